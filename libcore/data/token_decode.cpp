// Decoders of tokenizer.json: ByteLevel and sequences of decoders.
#include <utility>

#include "data/byte_alphabet.h"
#include "data/tokenizer_parts.h"

namespace loongforge::data {
namespace {

using support::Json;

class ByteLevelDecoder : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    // A token with a character outside the alphabet (an added one) stands for itself.
    for (std::string& token : tokens)
      if (auto bytes = alphabet_to_bytes(token)) token = std::move(*bytes);
  }
};

// What the reference does without a decoder: a space between tokens.
class SpaceJoin : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, 1, ' ');
  }
};

class SequenceDecoder : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> parts)
      : parts_(std::move(parts)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const Json* json, const std::string& where) {
  if (json == nullptr || json->is_null()) return std::make_unique<SpaceJoin>();
  const std::string& type = json->at("type", "decoder").as_string("decoder's type");
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> parts;
    for (const Json& part : json->at("decoders", "decoder Sequence").as_array("decoders"))
      parts.push_back(make_decoder(&part, where));
    return std::make_unique<SequenceDecoder>(std::move(parts));
  }
  throw_unsupported_part(where, "decoder", type, "ByteLevel, Sequence");
}

}  // namespace loongforge::data
