#include "data/tokenizer_spm.h"

#include <algorithm>
#include <cfloat>
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/byte_tokens.h"
#include "data/spm_proto.h"
#include "data/unigram.h"
#include "data/vocabulary.h"
#include "support/sentencepiece.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::SentencePiece;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, a space in the pieces' spelling

// The library with one model in two ways: with the dummy prefix, which a text's first stretch gets,
// and without, for what follows added tokens. legacy: every stretch gets it.
class Library {
 public:
  Library(const std::string& bytes, const SpmProto& proto, bool legacy, const std::string& where)
      : first_(bytes, where), strips_(proto.remove_extra_whitespaces) {
    if (!legacy && proto.add_dummy_prefix)
      later_.emplace(bytes + spm_without_dummy_prefix(), where);
  }

  const SentencePiece& model(std::string_view stretch, bool text_start) const {
    // Where the model takes leading spaces off, the one before a later stretch comes back as its
    // prefix.
    const bool prefixed = text_start || (strips_ && stretch[0] == ' ');
    return prefixed || !later_ ? first_ : *later_;
  }

 private:
  SentencePiece first_;
  std::optional<SentencePiece> later_;
  bool strips_;
};

// Where pieces stand in a stretch of `size` bytes. Those without text of their own (the prefix, all
// bytes of a character but the last) belong to the text of the one that follows.
std::vector<Range> ranges_of(const std::vector<SentencePiece::Piece>& pieces, size_t size) {
  std::vector<Range> ranges;
  ranges.reserve(pieces.size());
  for (const auto& p : pieces)
    ranges.push_back({std::min(p.begin, size), std::min(std::max(p.begin, p.end), size)});
  for (size_t i = ranges.size(); i-- > 1;)
    if (ranges[i - 1].begin == ranges[i - 1].end && ranges[i].begin == ranges[i - 1].begin)
      ranges[i - 1].end = ranges[i].end;
  return ranges;
}

class SpmBpe : public TokenModel {
 public:
  SpmBpe(const std::string& bytes, const SpmProto& proto, bool legacy, const std::string& where)
      : library_(bytes, proto, legacy, where) {
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
    const SentencePiece& model = library_.model(piece, scratch.text_start);
    if (spans == nullptr) return model.encode(piece, ids);
    std::vector<SentencePiece::Piece> pieces;
    model.encode(piece, pieces);
    for (const auto& p : pieces) ids.push_back(p.id);
    const std::vector<Range> ranges = ranges_of(pieces, piece.size());
    spans->insert(spans->end(), ranges.begin(), ranges.end());
  }
  int32_t token_to_id(std::string_view token) const override { return vocabulary_.find(token); }
  std::string_view id_to_token(int32_t id) const override { return vocabulary_.token(id); }
  int32_t end_id() const override { return vocabulary_.end_id(); }

 private:
  Vocabulary vocabulary_;
  Library library_;
};

UnigramTokens unigram_tokens(const SpmProto& proto) {
  constexpr float kUnkPenalty = 10.0f;
  UnigramTokens out;
  out.unk = proto.unk;
  out.byte_fallback = proto.byte_fallback;
  out.single_precision = true;
  float lowest = FLT_MAX, highest = -FLT_MAX;
  for (const SpmPiece& piece : proto.pieces) {
    if (piece.type != SpmType::kNormal) continue;
    lowest = std::min(lowest, piece.score);
    highest = std::max(highest, piece.score);
  }
  out.unk_score = lowest - kUnkPenalty;
  for (const SpmPiece& piece : proto.pieces) {
    const bool user = piece.type == SpmType::kUserDefined;
    out.tokens.push_back(piece.text);
    out.sought.push_back(user || piece.type == SpmType::kNormal);
    // Worth more than any way to cut it; rounded where the library rounds.
    const float bonus = static_cast<float>(piece.text.size()) * highest;
    out.scores.push_back(user ? static_cast<float>(bonus - 0.1) : piece.score);
  }
  return out;
}

// Releases of the library round the scores' sums differently and so cut equal ways differently.
// It normalizes, character by character; the cutting, in single precision as the newer ones have
// it, is ours.
class SpmUnigram : public TokenModel {
 public:
  SpmUnigram(const std::string& bytes, const SpmProto& proto, bool legacy, const std::string& where)
      : library_(bytes + spm_as_characters(), proto, legacy, where),
        model_(make_unigram(unigram_tokens(proto), where)) {}

  std::unique_ptr<ModelScratch> make_scratch() const override { return model_->make_scratch(); }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override {
    if (piece.empty()) return;
    std::vector<SentencePiece::Piece> chars;
    library_.model(piece, scratch.text_start).encode(piece, chars);
    std::string text;
    std::vector<Range> origins;  // per byte of text
    const std::vector<Range> ranges = ranges_of(chars, piece.size());
    for (size_t i = 0; i < chars.size(); ++i) {
      const int byte = byte_of_token(chars[i].text);
      const size_t before = text.size();
      byte >= 0 ? text.push_back(static_cast<char>(byte)) : void(text += chars[i].text);
      if (spans != nullptr) origins.insert(origins.end(), text.size() - before, ranges[i]);
    }
    const size_t first = spans == nullptr ? 0 : spans->size();
    model_->encode(text, scratch, ids, spans);
    for (size_t i = first; spans != nullptr && i < spans->size(); ++i) {
      Range& span = (*spans)[i];
      span = {origins[span.begin].begin, origins[span.end - 1].end};
    }
  }
  int32_t token_to_id(std::string_view token) const override { return model_->token_to_id(token); }
  std::string_view id_to_token(int32_t id) const override { return model_->id_to_token(id); }
  int32_t end_id() const override { return model_->end_id(); }

 private:
  Library library_;
  std::unique_ptr<TokenModel> model_;
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
  const bool legacy = config.legacy.value_or(false);
  if (proto.bpe) {
    parts.model = std::make_unique<SpmBpe>(bytes, proto, legacy, where);
  } else {
    parts.model = std::make_unique<SpmUnigram>(bytes, proto, legacy, where);
  }
  parts.decoder = std::make_unique<SpmDecoder>(proto);
  add_tokens_and_flags(support::Json(), config, parts, where);
  return parts;
}

}  // namespace loongforge::data
