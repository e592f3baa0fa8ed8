// Which model a tokenizer.json asks for. Each model has its own file.
#include "data/bpe.h"
#include "data/bpe_chars.h"
#include "data/tokenizer_parts.h"
#include "data/unigram.h"

namespace loongforge::data {

std::unique_ptr<TokenModel> make_model(const support::Json& json, bool byte_level,
                                       const std::string& where) {
  json.as_object("model");
  // Old files leave the type out; only BPE has merges, only Unigram a list of scores.
  const support::Json* vocab = json.find("vocab");
  const char* guess = json.contains("merges")                 ? "BPE"
                      : vocab != nullptr && vocab->is_array() ? "Unigram"
                                                              : "without a type";
  const std::string type = json.get_string("type", guess);
  if (type == "BPE") return byte_level ? make_byte_bpe(json, where) : make_char_bpe(json, where);
  if (type == "Unigram") return make_unigram(json, where);
  throw_unsupported_part(where, "model", type, "BPE, Unigram");
}

}  // namespace loongforge::data
