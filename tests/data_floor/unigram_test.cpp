// Oracle: the best of all ways to cut a text, tried one by one. Reference tokenizers:
// tokenizer_test.cpp.
#include "data/unigram.h"

#include <cmath>
#include <map>
#include <random>

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

// The highest sum of scores that any cutting of text into tokens reaches.
double best_score(const std::map<std::string, double>& scores, const std::string& text) {
  if (text.empty()) return 0;
  double best = -INFINITY;
  for (size_t n = 1; n <= text.size(); ++n)
    if (const auto it = scores.find(text.substr(0, n)); it != scores.end())
      best = std::max(best, it->second + best_score(scores, text.substr(n)));
  return best;
}

TEST_CASE("no cutting of a text scores higher than the one chosen") {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, double> scores = {{"a", -3.0}, {"b", -3.5}, {"c", -4.0}};
    while (scores.size() < 14) {
      std::string token;
      for (size_t n = 2 + random() % 3; n > 0; --n) token += static_cast<char>('a' + random() % 3);
      scores[token] = -1.0 - static_cast<double>(random() % 1000) / 100.0;
    }
    Json vocab = Json::array();
    vocab.push_back(Json(Json::Array{Json("<unk>"), Json(0.0)}));
    for (const auto& [token, score] : scores)
      vocab.push_back(Json(Json::Array{Json(token), Json(score)}));
    Json json = Json::object();
    json.set("unk_id", 0);
    json.set("vocab", std::move(vocab));
    const auto model = make_unigram(json, "small");
    const auto scratch = model->make_scratch();
    for (int n = 0; n < 20; ++n) {
      std::string text;
      for (size_t length = random() % 11; length > 0; --length)
        text += static_cast<char>('a' + random() % 3);
      CAPTURE(text);
      std::vector<int32_t> ids;
      model->encode(text, *scratch, ids, nullptr);
      std::string spelled;
      double score = 0;
      for (int32_t id : ids) {
        spelled += model->id_to_token(id);
        score += scores.at(std::string(model->id_to_token(id)));
      }
      CHECK(spelled == text);
      CHECK(score == doctest::Approx(best_score(scores, text)).epsilon(1e-12));
    }
  }
}

TEST_CASE("neighbouring unknown characters are one token, or their bytes") {
  const auto ids_of = [](const char* json, const char* text) {
    const auto model = make_unigram(Json::parse(json, "j"), "t.json");
    const auto scratch = model->make_scratch();
    std::vector<int32_t> ids;
    model->encode(text, *scratch, ids, nullptr);
    return ids;
  };
  CHECK(ids_of(R"({"unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]]})", "xya\xE9\xBE\x99") ==
        std::vector<int32_t>{0, 1, 0});
  CHECK(ids_of(R"({"unk_id": 0, "byte_fallback": true,
                   "vocab": [["<unk>", 0], ["a", -1], ["<0x78>", 0], ["<0x79>", 0]]})",
               "xyaz") == std::vector<int32_t>{2, 3, 1, 0});
}

std::string fault(const char* json) {
  return test::error_of([&] { make_unigram(Json::parse(json, "j"), "t.json"); }).what();
}

TEST_CASE("what is wrong in a model is named") {
  CHECK(has(fault(R"({"vocab": []})"), "a vocabulary of 0 tokens"));
  CHECK(has(fault(R"({"vocab": {"a": 1}})"), "vocab is object, not array"));
  CHECK(has(fault(R"({"vocab": [["a"]]})"), "vocab[0] is no pair"));
  CHECK(has(fault(R"({"vocab": [["a", "b"]]})"), "vocab[0] is string"));
  CHECK(has(fault(R"({"vocab": [["a", 1], ["a", 2]]})"), "vocab[1] repeats token 'a'"));
  CHECK(has(fault(R"({"vocab": [["a", 1]], "unk_id": 1})"),
            "unk_id 1 is outside its vocabulary of 1"));
  const auto model = make_unigram(Json::parse(R"({"vocab": [["a", 1]]})", "j"), "t.json");
  const auto scratch = model->make_scratch();
  std::vector<int32_t> ids;
  CHECK(has(test::error_of([&] { model->encode("z", *scratch, ids, nullptr); }).what(),
            "no unk_id, and no token for 'z'"));
}

}  // namespace
}  // namespace loongforge::data
