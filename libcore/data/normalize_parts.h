// The normalizers that make_normalizer knows besides the Unicode forms; each from its JSON.
// Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

std::unique_ptr<Normalizer> make_prepend(const support::Json& json, const std::string& where);
std::unique_ptr<Normalizer> make_replace(const support::Json& json, const std::string& where);
std::unique_ptr<Normalizer> make_strip(const support::Json& json, const std::string& where);
std::unique_ptr<Normalizer> make_lowercase();
std::unique_ptr<Normalizer> make_strip_accents();
// SentencePiece's own table of replacements, base64 in the file.
std::unique_ptr<Normalizer> make_precompiled(const support::Json& json, const std::string& where);

}  // namespace loongforge::data
