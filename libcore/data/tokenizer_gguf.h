// The tokenizer inside a GGUF file, as the Hugging Face files it stands for. Loading and exporting
// both go through these documents, so an exported tokenizer gives the ids that the loaded one gave.
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "support/json.h"

namespace loongforge::data {

struct GgufTokenizer {
  support::Json tokenizer;   // tokenizer.json
  support::Json config;      // tokenizer_config.json, chat template included
  support::Json generation;  // eos_token_id list, for where generation stops
};

// What a name of tokenizer.ggml.pre stands for.
struct GgufPre {
  support::Json pre_tokenizer;
  bool nfc = false;          // the text is normalised first
  bool whole_words = false;  // a word that is a token stays one, whatever the merges
};
std::optional<GgufPre> gguf_pre(std::string_view name);  // nothing for an unknown name

bool gguf_has_tokenizer(const formats::GgufFile& file);
// Error(kBadData) where the metadata is missing, contradictory or of a kind that is not supported.
GgufTokenizer read_gguf_tokenizer(const formats::GgufFile& file);
// tokenizer_config.json alone: no vocabulary is built.
support::Json read_gguf_tokenizer_config(const formats::GgufFile& file);

}  // namespace loongforge::data
