// SentencePiece models. The adapter to libsentencepiece: its header stands in sentencepiece.cpp
// only. The library trusts parts of a model's content: check it first (data/spm_proto.h).
// Thread-safety: immutable after construction; encode() may be called from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loongforge::support {

class SentencePiece {
 public:
  struct Piece {
    int32_t id = -1;
    std::string text;           // as the model spells it; of the unknown piece, what is unknown
    size_t begin = 0, end = 0;  // bytes of the text; empty where the library names no text
  };

  // model: a serialized ModelProto. Error(kBadData) with the library's reason; where names the
  // file.
  SentencePiece(std::string_view model, const std::string& where);
  ~SentencePiece();
  SentencePiece(SentencePiece&&) noexcept;
  SentencePiece& operator=(SentencePiece&&) noexcept;

  // Appends. REQUIRES: valid UTF-8.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;
  void encode(std::string_view text, std::vector<Piece>& pieces) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::support
