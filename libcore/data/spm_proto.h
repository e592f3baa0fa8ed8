// A SentencePiece model file (tokenizer.model): its pieces and the settings that matter here, read
// from the protobuf wire format. Everything that libsentencepiece would take on trust is checked.
// Thread-safety: values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loongforge::data {

enum class SpmType {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct SpmPiece {
  std::string text;
  float score = 0;
  SpmType type = SpmType::kNormal;
};

struct SpmProto {
  std::vector<SpmPiece> pieces;  // by id
  bool bpe = false;              // else unigram
  bool byte_fallback = false;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true;
  // The control pieces that the model names so, and its unknown one; -1 where there is none.
  int32_t bos = -1, eos = -1, pad = -1, unk = -1;
};

// Error(kBadData) that names the part; where is the file.
SpmProto parse_spm_proto(std::string_view bytes, const std::string& where);

// What to append to a serialized model to turn its dummy prefix off: protobuf merges the fields of
// messages that are written one behind the other.
std::string spm_without_dummy_prefix();
// The same to make it a model of single characters: what its normalizer makes of a text.
std::string spm_as_characters();

}  // namespace loongforge::data
