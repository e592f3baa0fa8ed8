#include "data/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "data/tokenizer_json.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr size_t kMaxText = size_t{2} << 30;  // offsets within a piece are 32 bits wide

// What one encode needs for itself.
struct Scratch {
  support::Regex::Matcher matcher;
  std::unique_ptr<ModelScratch> model;
  Segment segment, part;
  std::vector<AddedTokens::Part> parts, inner_parts;
  std::vector<Range> spans;
};

}  // namespace

struct Tokenizer::Impl {
  TokenizerParts parts;
  std::string where;
  Json special_tokens;
  bool find_special = true;
  std::optional<int32_t> bos, eos, pad, unk;
  std::vector<int32_t> eos_ids;
  int32_t vocab_size = 0;

  // Scratch sets that no encode is using: as many as encodes ever ran at once.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;

  std::unique_ptr<Scratch> take_scratch() const {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
      }
    }
    auto scratch = std::make_unique<Scratch>();
    scratch->model = parts.model->make_scratch();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) const {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  std::string_view token(int32_t id) const {
    if (const AddedToken* added = parts.added.find(id)) return added->content;
    return parts.model->id_to_token(id);
  }
  std::optional<int32_t> find(std::string_view token) const {
    if (const AddedToken* added = parts.added.find(token)) return added->id;
    int32_t id = parts.model->token_to_id(token);
    return id >= 0 ? std::optional(id) : std::nullopt;
  }

  void encode(std::string_view text, bool add_special, std::vector<int32_t>& ids,
              std::vector<std::pair<size_t, size_t>>* offsets) const;
  void encode_plain(Scratch& s, std::vector<int32_t>& ids,
                    std::vector<std::pair<size_t, size_t>>* offsets) const;
  void encode_part(const Segment& whole, Range range, Scratch& s, std::vector<int32_t>& ids,
                   std::vector<std::pair<size_t, size_t>>* offsets) const;
  void read_specials(const TokenizerConfig& config, const Json& generation);
};

// The pre-tokenizer and the model over one stretch without added tokens.
void Tokenizer::Impl::encode_part(const Segment& whole, Range range, Scratch& s,
                                  std::vector<int32_t>& ids,
                                  std::vector<std::pair<size_t, size_t>>* offsets) const {
  s.part.reset_from(whole, range);
  if (parts.pre_tokenizer != nullptr) parts.pre_tokenizer->apply(s.part, s.matcher);
  std::string_view text = s.part.text();
  const bool start = range.begin == 0 && s.segment.offset() == 0;
  for (Range piece : s.part.pieces()) {
    std::string_view bytes = text.substr(piece.begin, piece.end - piece.begin);
    s.model->text_start = start && piece.begin == 0;
    if (offsets == nullptr) {
      parts.model->encode(bytes, *s.model, ids, nullptr);
      continue;
    }
    s.spans.clear();
    parts.model->encode(bytes, *s.model, ids, &s.spans);
    for (Range span : s.spans) {
      Range origin = s.part.origin({piece.begin + span.begin, piece.begin + span.end});
      offsets->emplace_back(origin.begin, origin.end);
    }
  }
}

// Normalisation, then the added tokens that are sought in normalised text.
void Tokenizer::Impl::encode_plain(Scratch& s, std::vector<int32_t>& ids,
                                   std::vector<std::pair<size_t, size_t>>* offsets) const {
  if (parts.normalizer != nullptr) parts.normalizer->apply(s.segment);
  if (!parts.added.any(true))
    return encode_part(s.segment, {0, s.segment.text().size()}, s, ids, offsets);
  parts.added.split(s.segment.text(), true, find_special, s.inner_parts);
  for (const auto& part : s.inner_parts) {
    if (part.id < 0) {
      encode_part(s.segment, part.range, s, ids, offsets);
      continue;
    }
    ids.push_back(part.id);
    if (offsets != nullptr) {
      Range origin = s.segment.origin(part.range);
      offsets->emplace_back(origin.begin, origin.end);
    }
  }
}

void Tokenizer::Impl::encode(std::string_view text, bool add_special, std::vector<int32_t>& ids,
                             std::vector<std::pair<size_t, size_t>>* offsets) const {
  if (text.size() > kMaxText)
    throw_bad_data({}, "a text of more than 2 GiB cannot be tokenized in one piece");
  if (size_t at = support::find_invalid_utf8(text); at != support::kUtf8Valid)
    throw_bad_data({}, "the text is not valid UTF-8 at byte " + std::to_string(at));
  auto scratch = take_scratch();
  Scratch& s = *scratch;
  auto add_fixed = [&](const std::vector<int32_t>& fixed, size_t at) {
    ids.insert(ids.end(), fixed.begin(), fixed.end());
    if (offsets != nullptr) offsets->insert(offsets->end(), fixed.size(), {at, at});
  };
  if (add_special) add_fixed(parts.post.prefix, 0);
  parts.added.split(text, false, find_special, s.parts);
  for (const auto& part : s.parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      if (offsets != nullptr) offsets->emplace_back(part.range.begin, part.range.end);
      continue;
    }
    s.segment.reset(text.substr(part.range.begin, part.range.end - part.range.begin),
                    part.range.begin, offsets != nullptr || parts.track_origins);
    encode_plain(s, ids, offsets);
  }
  if (add_special) add_fixed(parts.post.suffix, text.size());
  give_back(std::move(scratch));
}

void Tokenizer::Impl::read_specials(const TokenizerConfig& config, const Json& generation) {
  auto named = [&](const char* key) -> std::optional<int32_t> {
    std::string token = config.token(key);
    return token.empty() ? std::nullopt : find(token);
  };
  bos = named("bos_token");
  eos = named("eos_token");
  pad = named("pad_token");
  unk = named("unk_token");
  if (eos.has_value()) eos_ids.push_back(*eos);
  const Json* stops = generation.find("eos_token_id");
  if (stops == nullptr || stops->is_null()) return;
  Json::Array list = stops->is_array() ? stops->as_array() : Json::Array{*stops};
  for (const Json& item : list) {
    int64_t id = item.as_int("generation_config.json's eos_token_id");
    if (id < 0 || id > INT32_MAX / kIdScale)
      throw_bad_data(where, "generation_config.json's eos_token_id " + std::to_string(id) +
                                " is out of range");
    if (std::find(eos_ids.begin(), eos_ids.end(), id) == eos_ids.end())
      eos_ids.push_back(static_cast<int32_t>(id));
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::from_json(const Json& tokenizer, const Json& config, const Json& generation,
                               const std::string& where) {
  TokenizerConfig parsed = parse_tokenizer_config(config, Json(), where);
  return from_parts(build_tokenizer(tokenizer, parsed, where), parsed, generation, where);
}

Tokenizer Tokenizer::from_parts(TokenizerParts parts, const TokenizerConfig& config,
                                const Json& generation, const std::string& where) {
  auto impl = std::make_unique<Impl>();
  impl->where = where;
  impl->parts = std::move(parts);
  impl->special_tokens = config.special_tokens;
  impl->find_special = !config.split_special_tokens;
  impl->vocab_size = std::max(impl->parts.model->end_id(), impl->parts.added.end_id());
  impl->read_specials(config, generation);
  return Tokenizer(std::move(impl));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  impl_->encode(text, add_special, ids, nullptr);
  return ids;
}

void Tokenizer::encode_append(std::string_view text, bool add_special,
                              std::vector<int32_t>& ids) const {
  impl_->encode(text, add_special, ids, nullptr);
}

Encoding Tokenizer::encode_with_offsets(std::string_view text, bool add_special) const {
  Encoding encoding;
  impl_->encode(text, add_special, encoding.ids, &encoding.offsets);
  return encoding;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    const AddedToken* added = impl_->parts.added.find(id);
    if (added != nullptr && added->special && skip_special) continue;
    std::string_view token =
        added != nullptr ? impl_->parts.added.decoded(id) : impl_->parts.model->id_to_token(id);
    if (!token.empty()) tokens.emplace_back(token);
  }
  impl_->parts.decoder->apply(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return support::find_invalid_utf8(text) == support::kUtf8Valid ? text : support::utf8_lossy(text);
}

std::vector<int32_t> Tokenizer::encode_ir(std::string_view text, bool add_special) const {
  std::vector<int32_t> ids = encode(text, add_special);
  for (int32_t& id : ids) id *= kIdScale;
  return ids;
}

std::string Tokenizer::decode_ir(std::span<const int32_t> even_ids, bool skip_special) const {
  std::vector<int32_t> ids;
  ids.reserve(even_ids.size());
  for (int32_t id : even_ids) {
    if (id % kIdScale != 0)
      throw_bad_data(impl_->where, "LoongIR token id " + std::to_string(id) + " is odd");
    ids.push_back(id / kIdScale);
  }
  return decode(ids, skip_special);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->find(token);
}
std::string_view Tokenizer::id_to_token(int32_t id) const { return impl_->token(id); }
bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* added = impl_->parts.added.find(id);
  return added != nullptr && added->special;
}
int32_t Tokenizer::vocab_size() const { return impl_->vocab_size; }
std::optional<int32_t> Tokenizer::bos_id() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return impl_->eos; }
std::optional<int32_t> Tokenizer::pad_id() const { return impl_->pad; }
std::optional<int32_t> Tokenizer::unk_id() const { return impl_->unk; }
const std::vector<int32_t>& Tokenizer::eos_ids() const { return impl_->eos_ids; }
std::vector<int32_t> Tokenizer::prefix_ids() const { return impl_->parts.post.prefix; }
std::vector<int32_t> Tokenizer::suffix_ids() const { return impl_->parts.post.suffix; }
const Json& Tokenizer::special_tokens() const { return impl_->special_tokens; }

// The decoders of this family work token by token or at the text's edges, so what an id adds shows
// as the difference of two decodes over a short window that starts where text was last given out.
std::string StreamDecoder::put(int32_t id) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  constexpr size_t kMaxHeldBack =
      16;  // bytes that never become a character must not grow the window for ever
  window_.push_back(id);
  std::string before = tokenizer_->decode(std::span(window_).first(shown_ids_), skip_special_);
  std::string after = tokenizer_->decode(window_, skip_special_);
  bool unfinished = after.ends_with(kReplacement) && window_.size() - shown_ids_ < kMaxHeldBack;
  if (after.size() <= before.size() || unfinished) return {};
  std::string added = after.substr(before.size());
  // Decoders may leave out spaces at a text's start: a window never starts with nothing but those.
  if (added.find_first_not_of(' ') == std::string::npos && window_.size() < kMaxHeldBack) {
    shown_ids_ = window_.size();
    return added;
  }
  window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(shown_ids_));
  shown_ids_ = window_.size();
  return added;
}

std::string StreamDecoder::finish() {
  std::string before = tokenizer_->decode(std::span(window_).first(shown_ids_), skip_special_);
  std::string after = tokenizer_->decode(window_, skip_special_);
  window_.clear();
  shown_ids_ = 0;
  return after.size() > before.size() ? after.substr(before.size()) : std::string();
}

}  // namespace loongforge::data
