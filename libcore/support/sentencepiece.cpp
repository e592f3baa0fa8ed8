#include "support/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <utility>

#include "base/error.h"

namespace loongforge::support {

struct SentencePiece::Impl {
  sentencepiece::SentencePieceProcessor processor;
  std::string where;

  // The library's own Status, or Abseil's in newer versions of it.
  template <typename Status>
  void require_ok(const Status& status, const char* what) const {
    if (status.ok()) return;
    std::string message(what);
    message += ": ";
    if constexpr (requires { status.error_message(); })
      message += status.error_message();
    else
      message += status.message();
    throw_bad_data(where, message);
  }
};

SentencePiece::SentencePiece(std::string_view model, const std::string& where)
    : impl_(std::make_unique<Impl>()) {
  impl_->where = where;
  try {
    impl_->require_ok(impl_->processor.LoadFromSerializedProto(model),
                      "the SentencePiece model is refused");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {  // of the library's tries
    throw_bad_data(where, std::string("the SentencePiece model is refused: ") + e.what());
  }
}

SentencePiece::~SentencePiece() = default;
SentencePiece::SentencePiece(SentencePiece&&) noexcept = default;
SentencePiece& SentencePiece::operator=(SentencePiece&&) noexcept = default;

void SentencePiece::encode(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int> found;
  impl_->require_ok(impl_->processor.Encode(text, &found), "encoding");
  ids.insert(ids.end(), found.begin(), found.end());
}

void SentencePiece::encode(std::string_view text, std::vector<Piece>& pieces) const {
  sentencepiece::ImmutableSentencePieceText found;
  impl_->require_ok(impl_->processor.Encode(text, found.mutable_proto()), "encoding");
  const size_t count = found.pieces_size();
  pieces.reserve(pieces.size() + count);
  for (size_t i = 0; i < count; ++i) {
    const auto piece = found.pieces(static_cast<int>(i));
    pieces.push_back({static_cast<int32_t>(piece.id()), piece.piece(), piece.begin(), piece.end()});
  }
}

}  // namespace loongforge::support
