#include "data/tokenizer_spm.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "data/byte_tokens.h"
#include "data/spm_proto.h"
#include "data/vocabulary.h"
#include "support/sentencepiece.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::SentencePiece;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, a space in the pieces' spelling

class SpmModel : public TokenModel {
 public:
  // legacy: every stretch gets the dummy prefix, not only the text's first.
  SpmModel(const std::string& bytes, const SpmProto& proto, bool legacy, const std::string& where)
      : first_(bytes, where), strips_(proto.remove_extra_whitespaces) {
    if (!legacy && proto.add_dummy_prefix)
      later_.emplace(bytes + spm_without_dummy_prefix(), where);
    vocabulary_.reserve(proto.pieces.size(), 8 * proto.pieces.size());
    for (size_t id = 0; id < proto.pieces.size(); ++id)
      vocabulary_.add(proto.pieces[id].text, static_cast<int32_t>(id));
  }

  std::unique_ptr<ModelScratch> make_scratch() const override {
    return std::make_unique<ModelScratch>();
  }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override {
    if (piece.empty()) return;
    // Where the model takes leading spaces off, the one before a later stretch comes back as its
    // prefix.
    const bool prefixed = scratch.text_start || (strips_ && piece[0] == ' ');
    const SentencePiece& model = prefixed || !later_ ? first_ : *later_;
    if (spans == nullptr) return model.encode(piece, ids);
    std::vector<SentencePiece::Piece> pieces;
    model.encode(piece, pieces);
    for (const auto& p : pieces) ids.push_back(p.id);
    append_spans(pieces, piece.size(), *spans);
  }
  int32_t token_to_id(std::string_view token) const override { return vocabulary_.find(token); }
  std::string_view id_to_token(int32_t id) const override { return vocabulary_.token(id); }
  int32_t end_id() const override { return vocabulary_.end_id(); }

 private:
  // Pieces without text of their own (the prefix, all bytes of a character but the last) belong to
  // the text of the one that follows.
  static void append_spans(const std::vector<SentencePiece::Piece>& pieces, size_t size,
                           std::vector<Range>& spans) {
    if (pieces.empty()) return;
    const size_t from = spans.size();
    for (const auto& p : pieces)
      spans.push_back({std::min(p.begin, size), std::min(std::max(p.begin, p.end), size)});
    for (size_t i = spans.size() - 1; i-- > from;)
      if (spans[i].begin == spans[i].end && spans[i + 1].begin == spans[i].begin)
        spans[i].end = spans[i + 1].end;
  }

  Vocabulary vocabulary_;
  SentencePiece first_;
  std::optional<SentencePiece> later_;  // the same without dummy prefix
  bool strips_;
};

// Pieces to text by the library's rules: bytes that spell no character become a replacement
// character each, what a dummy prefix or stripped spaces would give at the start is left out.
class SpmDecoder : public Decoder {
 public:
  explicit SpmDecoder(const SpmProto& proto)
      : one_(proto.add_dummy_prefix), all_(proto.remove_extra_whitespaces) {}

  void apply(std::vector<std::string>& tokens) const override {
    std::string text, bytes;
    bool start = true;
    const auto flush = [&] {
      append_bytes(text, bytes);
      bytes.clear();
    };
    for (const std::string& token : tokens) {
      if (const int byte = byte_of_token(token); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      start = start && text.empty();
      std::string_view rest = token;
      if (start && (one_ || all_) && rest.starts_with(kSpace)) {
        rest.remove_prefix(kSpace.size());
        start = all_;
      }
      for (size_t at; (at = rest.find(kSpace)) != rest.npos;) {
        text.append(rest, 0, at) += ' ';
        rest.remove_prefix(at + kSpace.size());
      }
      text += rest;
    }
    flush();
    tokens.assign(1, std::move(text));
  }

 private:
  static void append_bytes(std::string& text, std::string_view bytes) {
    while (!bytes.empty()) {
      size_t size = 1;
      while (size < 4 && size < bytes.size() &&
             support::find_invalid_utf8(bytes.substr(0, size)) != support::kUtf8Valid)
        ++size;
      if (support::find_invalid_utf8(bytes.substr(0, size)) != support::kUtf8Valid) {
        text += "\xEF\xBF\xBD";
        size = 1;
      } else {
        text += bytes.substr(0, size);
      }
      bytes.remove_prefix(size);
    }
  }

  bool one_, all_;
};

// LlamaTokenizer's names where the configuration leaves them out: what the model itself has.
void name_specials(const SpmProto& proto, bool known, TokenizerConfig& config) {
  const auto name = [&](const char* key, int32_t id) {
    if (id < 0 || config.special_tokens.contains(key)) return;
    AddedToken token;
    token.content = proto.pieces[static_cast<size_t>(id)].text;
    token.special = true;
    config.special_tokens.set(key, token.content);
    config.named.push_back(std::move(token));
  };
  name("bos_token", proto.bos);
  name("eos_token", proto.eos);
  name("unk_token", proto.unk);
  if (!known) name("pad_token", proto.pad);
  if (!config.add_bos_token.has_value()) config.add_bos_token = proto.bos >= 0;
  if (!known) config.split_special_tokens = true;
}

}  // namespace

TokenizerParts build_spm_tokenizer(const std::string& bytes, TokenizerConfig& config, bool known,
                                   const std::string& where) {
  const SpmProto proto = parse_spm_proto(bytes, where);
  name_specials(proto, known, config);
  TokenizerParts parts;
  parts.model = std::make_unique<SpmModel>(bytes, proto, config.legacy.value_or(false), where);
  parts.decoder = std::make_unique<SpmDecoder>(proto);
  add_tokens_and_flags(support::Json(), config, parts, where);
  return parts;
}

}  // namespace loongforge::data
