// Which model a tokenizer.json asks for. Each model has its own file.
#include "data/bpe.h"
#include "data/tokenizer_parts.h"

namespace loongforge::data {

std::unique_ptr<TokenModel> make_model(const support::Json& json, bool byte_level,
                                       const std::string& where) {
  json.as_object("model");
  // Old files leave the type out; only BPE has merges.
  std::string type = json.get_string("type", json.contains("merges") ? "BPE" : "without a type");
  if (type != "BPE")
    throw_unsupported_part(where, "model", type, "BPE with pre_tokenizer ByteLevel");
  if (!byte_level) {
    bool fallback = json.get_bool("byte_fallback", false);
    throw_unsupported_part(where, "model BPE",
                           fallback ? "with byte_fallback" : "without pre_tokenizer ByteLevel",
                           "BPE with pre_tokenizer ByteLevel");
  }
  return make_byte_bpe(json, where);
}

}  // namespace loongforge::data
