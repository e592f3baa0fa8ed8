// Oracle: BPE as it is defined, over the whole text, looking through all pairs again after every
// merge. Reference tokenizers with every flag: tokenizer_test.cpp.
#include "data/bpe_chars.h"

#include <map>
#include <random>

#include "data/byte_tokens.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

// A vocabulary of these characters, the bytes, and merges chosen at random.
struct Small {
  std::vector<std::string> chars = {"\xE2\x96\x81", "a", "b", "c", "\xE9\xBE\x99", "\xE8\x8A\xAF"};
  std::map<std::string, int32_t> ids;
  std::map<std::pair<std::string, std::string>, int64_t> ranks;
  Json json = Json::object();

  explicit Small(std::mt19937& random) {
    int32_t next = 0;
    ids["<unk>"] = next++;
    for (int byte = 0; byte < 256; ++byte) ids[byte_token(static_cast<uint8_t>(byte))] = next++;
    for (const std::string& c : chars) ids[c] = next++;
    std::vector<std::string> known = chars;
    Json merges = Json::array();
    for (int64_t rank = 0; rank < 40; ++rank) {
      const std::string left = known[random() % known.size()],
                        right = known[random() % known.size()];
      if (left.size() + right.size() > 18 || ranks.contains({left, right})) continue;
      ranks[{left, right}] = rank;
      merges.push_back(Json(Json::Array{Json(left), Json(right)}));
      if (ids.contains(left + right)) continue;
      ids[left + right] = next++;
      known.push_back(left + right);
    }
    Json vocab = Json::object();
    for (const auto& [token, id] : ids) vocab.set(token, id);
    json.set("vocab", std::move(vocab));
    json.set("merges", std::move(merges));
    json.set("byte_fallback", true);
  }

  std::vector<int32_t> encode(const std::vector<std::string>& text) const {
    std::vector<std::string> parts;
    for (const std::string& c : text) {
      if (ids.contains(c)) {
        parts.push_back(c);
      } else {
        for (char byte : c) parts.push_back(byte_token(static_cast<uint8_t>(byte)));
      }
    }
    while (true) {
      size_t best = parts.size();
      int64_t best_rank = INT64_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto it = ranks.find({parts[i], parts[i + 1]});
        if (it == ranks.end() || it->second >= best_rank) continue;
        best_rank = it->second;
        best = i;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    std::vector<int32_t> out;
    for (const std::string& part : parts) out.push_back(ids.at(part));
    return out;
  }
};

TEST_CASE("a text merges as the definition says, wherever it is cut") {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const Small small(random);
    const auto model = make_char_bpe(small.json, "small");
    const auto scratch = model->make_scratch();
    for (int n = 0; n < 60; ++n) {
      std::vector<std::string> chars;
      std::string text;
      for (size_t length = random() % 60; length > 0; --length) {
        const size_t pick = random() % (small.chars.size() + 2);
        chars.push_back(pick < small.chars.size()    ? small.chars[pick]
                        : pick == small.chars.size() ? "z"
                                                     : "\xF0\x9F\x98\x80");
        text += chars.back();
      }
      CAPTURE(text);
      const std::vector<int32_t> expected = small.encode(chars);
      std::vector<int32_t> ids, again;
      std::vector<Range> spans;
      model->encode(text, *scratch, ids, nullptr);
      model->encode(text, *scratch, again, &spans);
      CHECK(ids == expected);
      CHECK(again == expected);
      REQUIRE(spans.size() == ids.size());
      for (size_t i = 0; i < spans.size(); ++i) {
        CHECK(spans[i].begin == (i == 0 ? 0 : spans[i - 1].end));
        CHECK(spans[i].begin < spans[i].end);
      }
      if (!spans.empty()) CHECK(spans.back().end == text.size());
    }
  }
}

std::string fault(const char* json) {
  return test::error_of([&] { make_char_bpe(Json::parse(json, "j"), "t.json"); }).what();
}

TEST_CASE("what is wrong in a model is named") {
  CHECK(has(fault(R"({"vocab": {"a": 0, "b": 0}, "merges": []})"), "id 0 of token 'b' is taken"));
  CHECK(has(fault(R"({"vocab": {"a": -1}, "merges": []})"), "id -1 of token 'a' is out of range"));
  CHECK(has(fault(R"({"vocab": {"a": 99999999999}, "merges": []})"), "out of range"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": ["a b"]})"),
            "merges[0] needs token 'b', which the vocabulary lacks"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": ["a"]})"), "merges[0] 'a' is not two tokens"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [["a"]]})"), "merges[0] is no pair"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [1]})"), "merges[0] is integer"));
  CHECK(has(fault(R"({"vocab": ["a"], "merges": []})"), "vocab is array, not object"));
  CHECK(has(fault(R"({"vocab": {"a": "x"}, "merges": []})"), "vocab['a'] is string"));
  CHECK(has(fault(R"({"vocab": {"a": 0}})"), "merges"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [], "unk_token": "<unk>"})"),
            "unk_token '<unk>' is not in the vocabulary"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [], "continuing_subword_prefix": "##"})"),
            "continuing_subword_prefix is not supported"));
}

}  // namespace
}  // namespace loongforge::data
