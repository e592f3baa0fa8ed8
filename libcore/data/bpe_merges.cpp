#include "data/bpe_merges.h"

#include <functional>

#include "base/error.h"

namespace loongforge::data {
namespace {

using support::Json;

// Above this many symbols the shrinking arrays lose to a heap.
constexpr size_t kHeapFrom = 160;

void merge_short(const MergeTable& table, BpeScratch& s) {
  int32_t* ids = s.ids.data();
  uint32_t* ends = s.ends.data();
  Merge* merges = s.merges.data();
  size_t n = s.ids.size();
  while (n > 1) {
    size_t best = 0;
    uint32_t rank = merges[0].rank;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (merges[i].rank < rank) {
        rank = merges[i].rank;
        best = i;
      }
    }
    if (rank == kNoRank) break;
    ids[best] = merges[best].id;
    ends[best] = ends[best + 1];
    size_t tail = n - best - 2;
    std::memmove(ids + best + 1, ids + best + 2, tail * sizeof *ids);
    std::memmove(ends + best + 1, ends + best + 2, tail * sizeof *ends);
    if (tail > 0) std::memmove(merges + best, merges + best + 1, tail * sizeof *merges);
    --n;
    if (best > 0) merges[best - 1] = table.find(ids[best - 1], ids[best]);
    if (best + 1 < n) merges[best] = table.find(ids[best], ids[best + 1]);
  }
  s.ids.resize(n);
  s.ends.resize(n);
}

void merge_long(const MergeTable& table, BpeScratch& s) {
  constexpr uint32_t kEnd = UINT32_MAX;
  auto count = static_cast<uint32_t>(s.ids.size());
  s.prev.resize(count);
  s.next.resize(count);
  s.heap.clear();
  for (uint32_t i = 0; i < count; ++i) {
    s.prev[i] = i == 0 ? kEnd : i - 1;
    s.next[i] = i + 1 == count ? kEnd : i + 1;
    if (i + 1 < count && s.merges[i].rank != kNoRank)
      s.heap.push_back(uint64_t{s.merges[i].rank} << 32 | i);
  }
  s.merges.resize(count);
  auto later = std::greater<uint64_t>();
  std::make_heap(s.heap.begin(), s.heap.end(), later);
  auto refresh = [&](uint32_t i) {
    s.merges[i] = s.next[i] == kEnd ? Merge{} : table.find(s.ids[i], s.ids[s.next[i]]);
    if (s.merges[i].rank == kNoRank) return;
    s.heap.push_back(uint64_t{s.merges[i].rank} << 32 | i);
    std::push_heap(s.heap.begin(), s.heap.end(), later);
  };
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), later);
    uint64_t top = s.heap.back();
    s.heap.pop_back();
    auto i = static_cast<uint32_t>(top);
    // Symbols merged away have id -1; a pair that changed since has another rank.
    if (s.ids[i] < 0 || s.merges[i].rank != static_cast<uint32_t>(top >> 32)) continue;
    uint32_t j = s.next[i];
    s.ids[i] = s.merges[i].id;
    s.ends[i] = s.ends[j];
    s.ids[j] = -1;
    s.next[i] = s.next[j];
    if (s.next[j] != kEnd) s.prev[s.next[j]] = i;
    refresh(i);
    if (s.prev[i] != kEnd) refresh(s.prev[i]);
  }
  size_t n = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (s.ids[i] < 0) continue;
    s.ids[n] = s.ids[i];
    s.ends[n++] = s.ends[i];
  }
  s.ids.resize(n);
  s.ends.resize(n);
}

// One entry of "merges": "a b", or ["a", "b"] in newer files.
std::pair<std::string_view, std::string_view> merge_names(const Json& entry, size_t rank,
                                                          const std::string& where) {
  const auto name = [&] { return "model BPE: merges[" + std::to_string(rank) + "]"; };
  if (entry.is_string()) {
    std::string_view text = entry.as_string();
    size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      throw_bad_data(
          where, name() + " '" + std::string(text) + "' is not two tokens with one space between");
    return {text.substr(0, space), text.substr(space + 1)};
  }
  const Json::Array& pair = entry.as_array("merges[" + std::to_string(rank) + "]");
  if (pair.size() != 2) throw_bad_data(where, name() + " is no pair");
  return {pair[0].as_string("merge"), pair[1].as_string("merge")};
}

}  // namespace

void require_absent(const Json& json, const char* key, const std::string& where) {
  const Json* value = json.find(key);
  bool absent =
      value == nullptr || value->is_null() || (value->is_string() && value->as_string().empty()) ||
      (value->is_bool() && !value->as_bool()) || (value->is_number() && value->as_double() == 0);
  if (!absent) throw_bad_data(where, std::string("model BPE: ") + key + " is not supported");
}

Vocabulary read_bpe_vocabulary(const Json& json, const std::string& where) {
  const Json::Object& tokens = json.at("vocab", "model BPE").as_object("model BPE's vocab");
  size_t bytes = 0;
  for (const auto& [token, id] : tokens) bytes += token.size();
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.size(), bytes);
  for (const auto& [token, value] : tokens) {
    int64_t id = value.as_int("vocab['" + token + "']");
    if (id < 0 || id > Vocabulary::kMaxId)
      throw_bad_data(where, "model BPE: id " + std::to_string(id) + " of token '" + token +
                                "' is out of range");
    if (!vocabulary.add(token, static_cast<int32_t>(id)))
      throw_bad_data(where, "model BPE: id " + std::to_string(id) + " of token '" + token +
                                "' is taken already");
  }
  return vocabulary;
}

std::vector<MergeRule> read_bpe_merges(const Json& json, const Vocabulary& vocabulary,
                                       const std::string& where) {
  const Json::Array& list = json.at("merges", "model BPE").as_array("model BPE's merges");
  std::vector<MergeRule> rules;
  rules.reserve(list.size());
  std::string merged;
  for (size_t rank = 0; rank < list.size(); ++rank) {
    const auto [left, right] = merge_names(list[rank], rank, where);
    merged.assign(left);
    merged += right;
    const MergeRule rule = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(merged)};
    if (rule.left < 0 || rule.right < 0 || rule.merged < 0) {
      const std::string missing(rule.left < 0 ? left : rule.right < 0 ? right : merged);
      throw_bad_data(where, "model BPE: merges[" + std::to_string(rank) + "] needs token '" +
                                missing + "', which the vocabulary lacks");
    }
    rules.push_back(rule);
  }
  return rules;
}

int32_t read_bpe_unk(const Json& json, const Vocabulary& vocabulary, const std::string& where) {
  const std::string unk = json.get_string("unk_token", "");
  if (unk.empty()) return -1;
  const int32_t id = vocabulary.find(unk);
  if (id < 0) throw_bad_data(where, "model BPE: unk_token '" + unk + "' is not in the vocabulary");
  return id;
}

MergeTable make_merge_table(const std::vector<MergeRule>& rules) {
  MergeTable table;
  table.reserve(rules.size());
  for (size_t rank = 0; rank < rules.size(); ++rank)
    table.set(rules[rank].left, rules[rank].right,
              {static_cast<uint32_t>(rank), rules[rank].merged});
  return table;
}

void merge_symbols(const MergeTable& table, BpeScratch& s) {
  s.ids.size() < kHeapFrom ? merge_short(table, s) : merge_long(table, s);
}

}  // namespace loongforge::data
