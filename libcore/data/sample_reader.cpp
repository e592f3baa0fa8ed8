#include "data/sample_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/log.h"
#include "data/chat_turns.h"
#include "data/hash.h"
#include "data/plain_template.h"
#include "support/printable.h"

namespace loongforge::data {
namespace {

// Pages of larger files are given back to the system as soon as they were read.
constexpr uint64_t kLargeFile = uint64_t{256} << 20;
constexpr uint64_t kPagesHeld = uint64_t{32} << 20;

std::string keys_of(const support::Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.as_object()) keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "no keys" : "keys " + support::printable(keys, 100);
}

RecordReader::Plain plain_kind(const std::filesystem::path& file, TextChunks chunks) {
  if (file.extension() != ".txt") return RecordReader::Plain::kNo;
  return chunks == TextChunks::kLine ? RecordReader::Plain::kOnePerLine
                                     : RecordReader::Plain::kParagraphs;
}

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const DatasetOptions& checked(const DatasetOptions& options) {
  if (options.cutoff_len < 2) throw_usage("--cutoff_len must be at least 2");
  if (options.style.chat == nullptr) check_plain_template(options.style.name);
  return options;
}

}  // namespace

SampleReader::SampleReader(const DatasetOptions& options, const Tokenizer& tokenizer)
    : options_(checked(options)),
      builder_(tokenizer),
      path_(find_dataset(options.path_or_name)),
      file_(path_),
      reader_(as_text(file_.bytes()), path_.string(), plain_kind(path_, options.text_chunks)) {}

ContentHash SampleReader::content_hash() const {
  const std::span<const uint8_t> bytes = file_.bytes();
  ContentHash hash;
  for (size_t at = 0; at < bytes.size(); at += kPagesHeld) {
    const size_t n = std::min<size_t>(kPagesHeld, bytes.size() - at);
    hash.crc = crc32c(bytes.subspan(at, n), hash.crc);
    hash.wide = hash_mix(hash.wide ^ hash_bytes(as_text(bytes.subspan(at, n))));
    if (bytes.size() > kLargeFile) file_.drop(at, n);
  }
  return hash;
}

uint32_t SampleReader::sampled_hash(uint32_t crc) const {
  constexpr size_t kBlocks = 1024, kBlock = size_t{64} << 10;
  const std::span<const uint8_t> all = file_.bytes();
  if (all.size() <= kBlocks * kBlock) return crc32c(all, crc);
  uint8_t size[8];
  for (size_t i = 0; i < sizeof size; ++i) size[i] = static_cast<uint8_t>(all.size() >> 8 * i);
  crc = crc32c(size, crc);
  const size_t step = (all.size() - kBlock) / (kBlocks - 1);  // the last block ends the file
  for (size_t i = 0; i < kBlocks; ++i) {
    const size_t at = i + 1 < kBlocks ? i * step : all.size() - kBlock;
    crc = crc32c(all.subspan(at, kBlock), crc);
    file_.drop(at, kBlock);
  }
  return crc;
}

void SampleReader::give_back_pages() {
  const uint64_t at = reader_.place().offset;
  if (bytes() <= kLargeFile || at < pages_kept_from_ + kPagesHeld) return;
  file_.drop(pages_kept_from_, at - pages_kept_from_);
  pages_kept_from_ = at;
}

// The first record tells; the others have to be of the same format.
SampleReader::Format SampleReader::format_of(const Record& record) {
  const support::Json& value = record.value;
  const bool answers = value.contains("instruction") || value.contains("messages") ||
                       value.contains("conversations");
  // Alpaca records that carry the finished prompt in "text" as well are alpaca records.
  if (value.is_null() || (value.contains("text") && !answers)) return Format::kText;
  if (value.contains("messages")) return Format::kMessages;
  if (value.contains("conversations")) return Format::kShareGpt;
  if (value.contains("instruction")) return Format::kAlpaca;
  throw_bad_data(record.where, "the record has " + keys_of(value),
                 "known formats: alpaca (instruction, input, output), messages, sharegpt "
                 "(conversations), text");
}

bool SampleReader::read_record() {
  give_back_pages();
  record_place_ = reader_.place();
  chunks_.clear();
  chunks_given_ = 0;
  if (!reader_.next(record_)) return false;
  if (!format_) {
    format_ = format_of(record_);
    if (format_ != Format::kText && options_.text_chunks != TextChunks::kRecord)
      log_warning(path_.string() + ": --text_chunks has no effect: its records are not text");
  }
  if (format_ != Format::kText) {
    chunks_.emplace_back();
    return true;
  }
  if (!record_.value.is_null()) record_.text = read_text_record(record_);
  if (is_blank(record_.text))
    throw_bad_data(record_.where, "the text is empty: nothing to train on");
  split_text(record_.text);
  return true;
}

void SampleReader::split_text(std::string_view text) {
  const TextChunks wanted = options_.text_chunks;
  if (wanted == TextChunks::kRecord || wanted == TextChunks::kPacked) {
    chunks_.push_back(text);
    return;
  }
  size_t begin = 0, end = 0;  // of the paragraph so far
  const auto close = [&] {
    if (end > begin) chunks_.push_back(text.substr(begin, end - begin));
    end = begin = 0;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t line_end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, line_end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_blank(line)) {
      close();
    } else {
      if (end == 0) begin = at;
      end = at + line.size();
      if (wanted == TextChunks::kLine) close();
    }
    at = line_end + 1;
  }
  close();
}

Sample SampleReader::answer_sample() const {
  const bool alpaca = format_ == Format::kAlpaca;
  const Conversation conversation = alpaca                         ? read_alpaca(record_)
                                    : format_ == Format::kMessages ? read_messages(record_)
                                                                   : read_sharegpt(record_);
  if (!options_.train_on_prompt && !has_answer(conversation))
    throw_bad_data(record_.where, alpaca
                                      ? "\"output\" is empty: nothing to train on"
                                      : "no assistant message says anything: nothing to train on");
  Sample sample;
  if (options_.style.chat != nullptr) {
    ChatText chat = render_turns(*options_.style.chat, conversation);
    if (options_.mask_history && chat.turns.size() > 1)
      chat.turns.erase(chat.turns.begin(), chat.turns.end() - 1);
    sample = builder_.from_chat(chat);
  } else {
    sample =
        builder_.from_plain(plain_turns(options_.style.name, conversation), options_.mask_history);
  }
  if (!options_.train_on_prompt && sample.trained_count() == 0)
    throw_bad_data(record_.where, "the chat template leaves nothing to train on");
  return sample;
}

bool SampleReader::next_whole(Sample& sample) {
  if (chunks_given_ == chunks_.size() && !read_record()) return false;
  sample = format_ == Format::kText ? builder_.from_text(chunks_[chunks_given_]) : answer_sample();
  ++chunks_given_;
  sample.line = record_.number;
  builder_.cut(sample, options_.cutoff_len, counts_);
  if (options_.train_on_prompt) builder_.train_on_everything(sample);
  if (sample.trained_count() == 0)
    throw_bad_data(record_.where, "nothing is left to train on",
                   "the last " + std::to_string(options_.cutoff_len) +
                       " tokens (--cutoff_len) hold no part of an answer");
  return true;
}

// Before a text is read less than a piece is left, so that what is left of document_ after a piece
// was cut off is of the last text.
bool SampleReader::next_piece(Sample& sample) {
  const auto wanted = static_cast<size_t>(options_.cutoff_len);
  while (true) {
    bool ended = false;
    sample = Sample();
    sample.line = document_given_ < document_.ids.size() ? record_.number : 0;
    while (sample.ids.size() < wanted) {
      if (document_given_ == document_.ids.size()) {
        if (chunks_given_ == chunks_.size() && !read_record()) {
          ended = true;
          break;
        }
        document_ = builder_.document(chunks_[chunks_given_++]);
        document_given_ = 0;
      }
      if (sample.ids.empty()) sample.line = record_.number;
      const size_t n = std::min(wanted - sample.ids.size(), document_.ids.size() - document_given_);
      const auto from = static_cast<ptrdiff_t>(document_given_);
      const auto to = static_cast<ptrdiff_t>(document_given_ + n);
      sample.ids.insert(sample.ids.end(), document_.ids.begin() + from, document_.ids.begin() + to);
      sample.trained.insert(sample.trained.end(), document_.trained.begin() + from,
                            document_.trained.begin() + to);
      document_given_ += n;
    }
    if (sample.ids.empty()) return false;
    sample.trained[0] = 0;
    if (sample.trained_count() > 0) return true;
    if (ended) return false;  // a token or two that teach nothing
  }
}

bool SampleReader::next(Sample& sample) {
  if (options_.max_samples > 0 && samples_ >= options_.max_samples) return false;
  if (!format_ && !read_record()) return false;
  if (!(packs() ? next_piece(sample) : next_whole(sample))) return false;
  ++samples_;
  ++counts_.samples;
  counts_.tokens += static_cast<int64_t>(sample.ids.size());
  counts_.trained_tokens += sample.trained_count();
  return true;
}

SamplePlace SampleReader::place() const {
  SamplePlace place;
  place.samples = samples_;
  const bool inside =
      packs() ? document_given_ < document_.ids.size() : chunks_given_ < chunks_.size();
  // The first record is read to tell the format, and nothing of it was given yet.
  const bool unread = packs() && chunks_given_ < chunks_.size();
  place.record = inside || unread ? record_place_ : reader_.place();
  if (inside) place.given = packs() ? document_given_ : chunks_given_;
  return place;
}

void SampleReader::go_to(const SamplePlace& place) {
  if (!format_) read_record();
  reader_.go_to(place.record);
  samples_ = place.samples;
  pages_kept_from_ = place.record.offset;
  document_ = Sample();
  document_given_ = 0;
  chunks_.clear();
  chunks_given_ = 0;
  if (place.given == 0) return;
  bool found = read_record();
  if (found && packs()) {
    document_ = builder_.document(chunks_[chunks_given_++]);
    document_given_ = place.given;
    found = place.given < document_.ids.size();
  } else if (found) {
    chunks_given_ = place.given;
    found = place.given < chunks_.size();
  }
  if (!found)
    throw_bad_data(path_.string(), "does not go on at byte " + std::to_string(place.record.offset),
                   "it is not the file that was read before");
}

}  // namespace loongforge::data
