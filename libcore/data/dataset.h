// Instruction and text datasets: records become tokenised samples with a mask of what is trained on.
//
// Formats, told by content: alpaca (JSON array or JSONL: instruction, input, output, system, history), messages JSONL
// ({"messages": [{"role", "content"}]}), text (JSONL {"text"} or a plain .txt, one paragraph a sample). Faults end in an
// Error(kBadData) that names file:line (or the record's number in a JSON array).
// Thread-safety: immutable once loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/api.h"
#include "data/chat_template.h"
#include "data/tokenizer.h"

namespace loongforge::data {

struct Sample {
  std::vector<int32_t> ids;      // HF ids
  std::vector<uint8_t> trained;  // per token: 1 where this token is one that the model learns to produce
  int64_t line = 0;              // in the file (JSONL, text), or the record's number from 1 (JSON array)

  int64_t trained_count() const;
};

// How prompts are written when the model has a chat template, or --template names one.
struct PromptStyle {
  const ChatTemplate* chat = nullptr;  // null: the plain template `name`
  std::string name = "alpaca";         // "alpaca": "Below is an instruction ..." as Stanford Alpaca
};

struct DatasetOptions {
  std::string path_or_name;      // a file, or a name looked up in search_path as NAME, NAME.json, NAME.jsonl, NAME.txt
  int64_t cutoff_len = 1024;
  int64_t max_samples = 0;       // 0: all
  bool train_on_prompt = false;
  PromptStyle style;
};

struct DatasetCounts {
  int64_t records = 0;
  int64_t prompts_cut = 0;       // samples whose prompt lost its beginning to fit cutoff_len
  int64_t answers_cut = 0;       // samples whose answer alone exceeds cutoff_len: its beginning is cut, its end kept
  int64_t tokens = 0, trained_tokens = 0;
};

class LF_API Dataset {
 public:
  // Tokenises everything; a sample with nothing to train on is an Error naming file and line. Loss is on assistant turns
  // (their text and end token) and, for text, on every token; on everything with train_on_prompt. BOS and EOS by the
  // tokenizer's rules; plain templates and text end with the eos token.
  static Dataset load(const DatasetOptions& options, const Tokenizer& tokenizer);

  const std::vector<Sample>& samples() const { return samples_; }
  const DatasetCounts& counts() const { return counts_; }
  const std::filesystem::path& file() const { return file_; }
  uint32_t content_hash() const { return hash_; }  // CRC32C of the file's bytes

 private:
  std::vector<Sample> samples_;
  DatasetCounts counts_;
  std::filesystem::path file_;
  uint32_t hash_ = 0;
};

// A dataset's file: the path itself, or a known name under LOONGFORGE_DATA (else LOONGFORGE_HOME/share/data). An unknown name
// is an Error(kNoInput) that lists the known ones.
LF_API std::filesystem::path find_dataset(const std::string& path_or_name);

// Text with the trained-on tokens marked, for --preview: one block a sample. colour: ANSI, else [[...]] brackets.
LF_API std::string preview(const Sample& sample, const Tokenizer& tokenizer, bool colour);

// Prompts for generation: a file of one prompt a line, or JSONL {"prompt"} / {"messages"}. Each is rendered with the style's
// generation prompt and tokenised.
struct Prompt {
  std::string text;              // as the user wrote it
  std::vector<int32_t> ids;
};
LF_API std::vector<Prompt> load_prompts(const std::filesystem::path& file, const PromptStyle& style, const Tokenizer& tokenizer);

}  // namespace loongforge::data
