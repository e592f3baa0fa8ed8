// A model's tokenizer as the metadata of a GGUF file: the inverse of tokenizer_gguf.h.
// Thread-safety: pure function; it reads files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/api.h"
#include "formats/gguf_writer.h"

namespace loongforge::data {

struct GgufTokenizerKeys {
  formats::GgufKeys keys;  // empty where the tokenizer cannot be said in GGUF
  std::string unsaid;      // then why: "its pre_tokenizer has no name in GGUF files"
  std::string warning;     // of a part that is left out (the chat template); may be empty
};

// folder: holds the tokenizer's files, as Tokenizer::load. rows: of the embedding; tokens are
// padded to them with unused ones, more tokens than rows are an Error(kBadData). pad: the model's
// own pad id where the tokenizer names none.
LF_API GgufTokenizerKeys gguf_tokenizer_keys(const std::string& folder, int64_t rows,
                                             std::optional<int64_t> pad);

}  // namespace loongforge::data
