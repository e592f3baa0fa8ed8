#include "data/dataset.h"

#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "data/chat_turns.h"
#include "data/plain_template.h"
#include "data/record_reader.h"
#include "data/sample_builder.h"
#include "support/printable.h"

namespace loongforge::data {
namespace {

enum class Format { kAlpaca, kMessages, kText };

std::string keys_of(const support::Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.as_object()) keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "no keys" : "keys " + support::printable(keys, 100);
}

// The first record tells; the others have to be of the same format.
Format format_of(const Record& record) {
  if (record.value.is_null() || record.value.contains("text")) {
    // Alpaca records that carry the finished prompt in "text" as well are alpaca records.
    if (!record.value.contains("instruction") && !record.value.contains("messages"))
      return Format::kText;
  }
  if (record.value.contains("messages")) return Format::kMessages;
  if (record.value.contains("instruction")) return Format::kAlpaca;
  throw_bad_data(record.where, "the record has " + keys_of(record.value),
                 "known formats: alpaca (instruction, input, output), messages, text");
}

class Loader {
 public:
  Loader(const DatasetOptions& options, const Tokenizer& tokenizer)
      : options_(options), builder_(tokenizer) {}

  Sample load(const Record& record, DatasetCounts& counts) {
    if (!format_) format_ = format_of(record);
    Sample sample = *format_ == Format::kText ? text_sample(record) : answer_sample(record);
    sample.line = record.number;
    builder_.cut(sample, options_.cutoff_len, counts);
    if (options_.train_on_prompt) builder_.train_on_everything(sample);
    const int64_t trained = sample.trained_count();
    if (trained == 0)
      throw_bad_data(record.where, "nothing is left to train on",
                     "the last " + std::to_string(options_.cutoff_len) +
                         " tokens (--cutoff_len) hold no part of an answer");
    ++counts.records;
    counts.tokens += static_cast<int64_t>(sample.ids.size());
    counts.trained_tokens += trained;
    return sample;
  }

 private:
  Sample text_sample(const Record& record) const {
    const std::string text = read_text_record(record);
    if (is_blank(text)) throw_bad_data(record.where, "the text is empty: nothing to train on");
    return builder_.from_text(text);
  }

  Sample answer_sample(const Record& record) const {
    const bool alpaca = *format_ == Format::kAlpaca;
    const Conversation conversation = alpaca ? read_alpaca(record) : read_messages(record);
    if (!options_.train_on_prompt && !has_answer(conversation))
      throw_bad_data(record.where, alpaca ? "\"output\" is empty: nothing to train on"
                                          : "no assistant message says anything: nothing to train "
                                            "on");
    Sample sample = options_.style.chat != nullptr
                        ? builder_.from_chat(render_turns(*options_.style.chat, conversation))
                        : builder_.from_plain(plain_turns(options_.style.name, conversation));
    if (!options_.train_on_prompt && sample.trained_count() == 0)
      throw_bad_data(record.where, "the chat template leaves nothing to train on");
    return sample;
  }

  const DatasetOptions& options_;
  const SampleBuilder builder_;
  std::optional<Format> format_;
};

}  // namespace

Dataset Dataset::load(const DatasetOptions& options, const Tokenizer& tokenizer) {
  if (options.cutoff_len < 2) throw_usage("--cutoff_len must be at least 2");
  if (options.style.chat == nullptr) check_plain_template(options.style.name);
  Dataset dataset;
  dataset.file_ = find_dataset(options.path_or_name);
  const MappedFile file(dataset.file_);
  dataset.hash_ = crc32c(file.bytes());
  const bool txt = dataset.file_.extension() == ".txt";
  RecordReader reader({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                      dataset.file_.string(),
                      txt ? RecordReader::Plain::kParagraphs : RecordReader::Plain::kNo);
  Loader loader(options, tokenizer);
  Record record;
  const auto wanted = static_cast<size_t>(options.max_samples);
  SampleTableBuilder samples;
  while ((wanted == 0 || samples.size() < wanted) && reader.next(record))
    samples.add(loader.load(record, dataset.counts_));
  dataset.samples_ = samples.finish();
  return dataset;
}

}  // namespace loongforge::data
