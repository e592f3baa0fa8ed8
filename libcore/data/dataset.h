// Instruction and text datasets: records become tokenised samples with a mask of what is trained
// on.
//
// Formats, told by content (each as a JSON array or JSON lines): alpaca (instruction, input,
// output, system, history), messages ({"messages": [{"role", "content"}], "tools"}), sharegpt
// ({"conversations": [{"from", "value"}], "tools", "system"}), text ({"text"}, or a plain .txt).
// Faults end in an Error(kBadData) that names file:line (or the record's number and line in a JSON
// array).
// Thread-safety: immutable once loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/api.h"
#include "data/chat_template.h"
#include "data/dataset_choices.h"
#include "data/sample_table.h"
#include "data/tokenizer.h"

namespace loongforge::data {

// How prompts are written when the model has a chat template, or --template names one.
struct PromptStyle {
  const ChatTemplate* chat = nullptr;  // null: the plain template `name`
  // "alpaca": "Below is an instruction ..." as Stanford Alpaca. An unknown name is an Error(kUsage)
  // that lists the known ones, thrown by Dataset::load and load_prompts.
  std::string name = "alpaca";
};

struct DatasetOptions {
  // A file, or a name that find_dataset() knows.
  std::string path_or_name{};
  int64_t cutoff_len = 1024;
  int64_t max_samples = 0;  // 0: all; else the rest of the file is not looked at
  bool train_on_prompt = false;
  bool mask_history = false;  // of several answers only the last is trained on
  TextChunks text_chunks = TextChunks::kRecord;
  PromptStyle style{};
  // Where tokenised datasets are kept; empty: nowhere. Files below token_cache_from bytes are not.
  std::string token_cache{};
  uint64_t token_cache_from = 0;
  std::string tokenizer_id{};  // tokenizer_fingerprint(), for the cache
};

struct DatasetCounts {
  int64_t samples = 0;
  // Samples that were longer than cutoff_len: those that lost the beginning of their prompt only,
  // and those that lost trained-on tokens (their last cutoff_len tokens are kept).
  int64_t prompts_cut = 0;
  int64_t answers_cut = 0;
  int64_t tokens = 0, trained_tokens = 0;
};

class LF_API Dataset {
 public:
  // Tokenises everything, or takes it from the token cache, and leaves it there; what is wrong with
  // the cache is logged and costs time only. A sample with nothing to train on is an Error naming
  // file and line. Loss is on assistant turns (their text and end token) and, for text, on every
  // token; on everything with train_on_prompt. A chat template's text is tokenised as it is,
  // special tokens in it and none added; plain templates and text begin with BOS by the tokenizer's
  // rules and end with the eos token.
  static Dataset load(const DatasetOptions& options, const Tokenizer& tokenizer);

  const SampleTable& samples() const { return samples_; }
  Sample sample(size_t i) const { return samples_[i].sample(); }
  const DatasetCounts& counts() const { return counts_; }
  const std::filesystem::path& file() const { return file_; }
  uint32_t content_hash() const { return hash_; }  // CRC32C of the file's bytes
  bool from_cache() const { return from_cache_; }

 private:
  SampleTable samples_;
  DatasetCounts counts_;
  std::filesystem::path file_;
  uint32_t hash_ = 0;
  bool from_cache_ = false;
};

// A dataset's file: the path itself, or NAME, NAME.json, NAME.jsonl or NAME.txt in the folder
// LOONGFORGE_DATA (else LOONGFORGE_HOME/share/data). Anything else is an Error(kNoInput) that lists
// the known names.
LF_API std::filesystem::path find_dataset(const std::string& path_or_name);

// For --preview: one block a sample, its place ("records.jsonl line 12") and token counts, then its
// text, in which what is trained on stands in [[ ]] (bold green where colour is wanted). Control
// characters are shown as \xNN.
LF_API std::string preview(const Sample& sample, const Tokenizer& tokenizer, bool colour,
                           std::string_view place);
// The same as {"tokens", "trained_tokens", "parts": [{"text", "trained"}]}.
LF_API support::Json preview_json(const Sample& sample, const Tokenizer& tokenizer);

// Prompts for generation: a file of one prompt a line, or JSONL {"prompt"} / {"messages"}. Each is
// rendered with the style's generation prompt and tokenised.
struct Prompt {
  std::string text;  // as the user wrote it; of messages the last one
  std::vector<int32_t> ids;
};
LF_API std::vector<Prompt> load_prompts(const std::filesystem::path& file, const PromptStyle& style,
                                        const Tokenizer& tokenizer);

}  // namespace loongforge::data
