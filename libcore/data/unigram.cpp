#include "data/unigram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "data/byte_tokens.h"
#include "data/byte_trie.h"
#include "data/hash.h"
#include "data/piece_cache.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

// What an unknown character costs beyond the rarest token.
constexpr double kUnkPenalty = 10.0;

// The best way to reach a place in the piece.
struct Arrival {
  double score = 0;
  uint32_t from = 0;
  int32_t id = -1;
  bool reached = false;
};

struct UnigramScratch : ModelScratch {
  PieceCache cache;
  std::vector<Arrival> best;
  std::vector<int32_t> ids;
  std::vector<Range> spans;
};

class Unigram : public VocabularyModel {
 public:
  Unigram(UnigramTokens given, std::string where);

  std::unique_ptr<ModelScratch> make_scratch() const override {
    return std::make_unique<UnigramScratch>();
  }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override;

 private:
  void search(std::string_view piece, std::vector<Arrival>& best) const;
  void trace(std::string_view piece, UnigramScratch& s) const;
  void push_unknown(std::string_view piece, Range range, UnigramScratch& s) const;

  UnigramTokens given_;  // its names moved into the vocabulary
  ByteTrie trie_;
  std::array<int32_t, 256> byte_ids_{};
  std::string where_;
};

Unigram::Unigram(UnigramTokens given, std::string where)
    : given_(std::move(given)), where_(std::move(where)) {
  vocabulary_.reserve(given_.tokens.size(), 8 * given_.tokens.size());
  for (size_t id = 0; id < given_.tokens.size(); ++id)
    vocabulary_.add(given_.tokens[id], static_cast<int32_t>(id));
  given_.tokens = {};
  byte_ids_.fill(-1);
  if (given_.byte_fallback)
    byte_ids_ = byte_token_ids([&](std::string_view token) { return vocabulary_.find(token); });
  std::vector<std::pair<std::string_view, int32_t>> sought;
  for (int32_t id = 0; id < vocabulary_.end_id(); ++id)
    if (given_.sought[static_cast<size_t>(id)]) sought.emplace_back(vocabulary_.token(id), id);
  trie_.build(std::move(sought));
}

void Unigram::search(std::string_view piece, std::vector<Arrival>& best) const {
  best.assign(piece.size() + 1, Arrival{});
  const auto offer = [&](size_t from, size_t to, double score, int32_t id) {
    if (given_.single_precision) score = static_cast<float>(score);
    Arrival& there = best[to];
    if (!there.reached || score > there.score)
      there = {score, static_cast<uint32_t>(from), id, true};
  };
  for (size_t at = 0; at < piece.size();) {
    int length;
    support::decode_utf8(piece.data() + at, &length);
    const auto one = static_cast<size_t>(length);
    const double here = best[at].score;
    bool single = false;
    trie_.prefixes(piece.substr(at), [&](size_t size, int32_t id) {
      offer(at, at + size, given_.scores[static_cast<size_t>(id)] + here, id);
      single = single || size == one;
    });
    if (!single) {
      if (given_.unk < 0)
        throw_bad_data(where_, "model Unigram has no unk_id, and no token for '" +
                                   std::string(piece.substr(at, one)) + "'");
      offer(at, at + one, given_.unk_score + here, given_.unk);
    }
    at += one;
  }
}

// Unknown text: its bytes' tokens, or one unknown token.
void Unigram::push_unknown(std::string_view piece, Range range, UnigramScratch& s) const {
  const std::string_view text = piece.substr(range.begin, range.end - range.begin);
  if (const int32_t id = given_.unknown_may_spell ? vocabulary_.find(text) : -1; id >= 0) {
    s.ids.push_back(id);
    s.spans.push_back(range);
    return;
  }
  const auto has_token = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; };
  if (std::all_of(text.begin(), text.end(), has_token)) {
    for (char c : text) {
      s.ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
      s.spans.push_back(range);
    }
    return;
  }
  s.ids.push_back(given_.unk);
  s.spans.push_back(range);
}

// From the end back to the start, neighbouring unknown characters joined; then put in order.
void Unigram::trace(std::string_view piece, UnigramScratch& s) const {
  s.ids.clear();
  s.spans.clear();
  std::vector<Range> steps;
  std::vector<int32_t> step_ids;
  for (size_t end = piece.size(); end > 0;) {
    const Arrival& arrival = s.best[end];
    if (arrival.id == given_.unk && !steps.empty() && step_ids.back() == given_.unk) {
      steps.back().begin = arrival.from;
    } else {
      steps.push_back({arrival.from, end});
      step_ids.push_back(arrival.id);
    }
    end = arrival.from;
  }
  for (size_t i = steps.size(); i-- > 0;) {
    if (step_ids[i] == given_.unk) {
      push_unknown(piece, steps[i], s);
    } else {
      s.ids.push_back(step_ids[i]);
      s.spans.push_back(steps[i]);
    }
  }
}

void Unigram::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
                     std::vector<Range>* spans) const {
  if (piece.empty()) return;
  auto& s = static_cast<UnigramScratch&>(scratch);
  const bool cached = spans == nullptr && piece.size() <= PieceCache::kMaxBytes;
  uint64_t hash = 0;
  if (cached) {
    hash = hash_bytes(piece);
    if (s.cache.find(piece, hash, ids)) return;
  }
  search(piece, s.best);
  trace(piece, s);
  ids.insert(ids.end(), s.ids.begin(), s.ids.end());
  if (spans != nullptr) spans->insert(spans->end(), s.spans.begin(), s.spans.end());
  if (cached) s.cache.put(piece, hash, s.ids.data(), s.ids.size());
}

UnigramTokens read_tokens(const Json& json, const std::string& where) {
  const Json::Array& list = json.at("vocab", "model Unigram").as_array("model Unigram's vocab");
  if (list.empty() || list.size() > static_cast<size_t>(Vocabulary::kMaxId))
    throw_bad_data(where, "model Unigram: a vocabulary of " + std::to_string(list.size()) +
                              " tokens is not supported");
  UnigramTokens out;
  double lowest = INFINITY;
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < list.size(); ++id) {
    const auto name = [&] { return "model Unigram's vocab[" + std::to_string(id) + "]"; };
    const Json::Array& entry = list[id].as_array(name());
    if (entry.size() != 2) throw_bad_data(where, name() + " is no pair of token and score");
    const std::string& token = entry[0].as_string(name());
    if (!seen.insert(token).second)
      throw_bad_data(where, name() + " repeats token '" + token + "'");
    const double score = entry[1].as_double(name());
    if (!std::isfinite(score)) throw_bad_data(where, name() + " has a score that is no number");
    out.tokens.push_back(token);
    out.scores.push_back(score);
    lowest = std::min(lowest, score);
  }
  out.sought.assign(out.tokens.size(), true);
  out.unk_score = lowest - kUnkPenalty;
  return out;
}

}  // namespace

std::unique_ptr<TokenModel> make_unigram(UnigramTokens tokens, const std::string& where) {
  return std::make_unique<Unigram>(std::move(tokens), where);
}

std::unique_ptr<TokenModel> make_unigram(const Json& json, const std::string& where) {
  UnigramTokens tokens = read_tokens(json, where);
  const auto count = static_cast<int64_t>(tokens.tokens.size());
  if (const Json* unk = json.find("unk_id"); unk != nullptr && !unk->is_null()) {
    const int64_t id = unk->as_int("model Unigram's unk_id");
    if (id < 0 || id >= count)
      throw_bad_data(where, "model Unigram: unk_id " + std::to_string(id) +
                                " is outside its vocabulary of " + std::to_string(count));
    tokens.unk = static_cast<int32_t>(id);
  }
  tokens.byte_fallback = json.get_bool("byte_fallback", false);
  tokens.unknown_may_spell = true;
  return make_unigram(std::move(tokens), where);
}

}  // namespace loongforge::data
