// Oracle: BPE as it is defined, by looking through all pairs again after every merge.
#include "data/bpe.h"

#include <map>
#include <random>

#include "data/byte_alphabet.h"
#include "data/tokenizer_gguf.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;

const Json& smollm2_model() {
  static const Json json =
      read_gguf_tokenizer(formats::GgufFile(test::golden("smollm2_tokenizer.gguf"))).tokenizer;
  return json.at("model");
}

class PlainBpe {
 public:
  explicit PlainBpe(const Json& model) {
    for (const auto& [token, id] : model.at("vocab").as_object()) vocab_[token] = id.as_int();
    int64_t rank = 0;
    for (const Json& merge : model.at("merges").as_array()) {
      const std::string& pair = merge.as_string();
      const size_t space = pair.find(' ');
      ranks_[{pair.substr(0, space), pair.substr(space + 1)}] = rank++;
    }
  }

  std::vector<int32_t> encode(const std::string& bytes) const {
    std::vector<std::string> parts;
    for (char byte : bytes) parts.push_back(bytes_to_alphabet(std::string(1, byte)));
    while (parts.size() > 1) {
      size_t best = parts.size();
      int64_t best_rank = INT64_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto it = ranks_.find({parts[i], parts[i + 1]});
        if (it == ranks_.end() || it->second >= best_rank) continue;
        best_rank = it->second;
        best = i;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    std::vector<int32_t> ids;
    for (const std::string& part : parts) ids.push_back(static_cast<int32_t>(vocab_.at(part)));
    return ids;
  }

 private:
  std::map<std::string, int64_t> vocab_;
  std::map<std::pair<std::string, std::string>, int64_t> ranks_;
};

TEST_CASE("pieces of every length merge as the definition says") {
  const auto model = make_byte_bpe(smollm2_model(), "smollm2");
  const PlainBpe plain(smollm2_model());
  const auto scratch = model->make_scratch();
  std::mt19937 random(7);
  std::string bytes;  // those that this vocabulary can spell
  for (int b = 0; b < 256; ++b) {
    const std::string byte(1, static_cast<char>(b));
    if (model->token_to_id(bytes_to_alphabet(byte)) >= 0) bytes += byte;
  }
  REQUIRE(bytes.size() > 200);
  const std::string letters = "etaoinshrdlu the and in of er aaaa....  ";
  for (size_t length : {1, 2, 3, 5, 8, 13, 29, 30, 31, 64, 159, 160, 161, 300, 700}) {
    for (int round = 0; round < 6; ++round) {
      std::string piece;
      for (size_t i = 0; i < length; ++i)
        piece += round % 2 == 0 ? letters[random() % letters.size()]
                 : round == 1   ? bytes[random() % bytes.size()]
                                : static_cast<char>('a' + random() % 4);
      const std::vector<int32_t> expected = plain.encode(piece);
      std::vector<int32_t> ids, again;
      std::vector<Range> spans;
      model->encode(piece, *scratch, ids, nullptr);
      model->encode(piece, *scratch, again, &spans);  // without the table of known pieces
      CHECK(ids == expected);
      CHECK(again == expected);
      ids.clear();
      model->encode(piece, *scratch, ids, nullptr);  // from that table
      CHECK(ids == expected);
      REQUIRE(spans.size() == expected.size());
      CHECK(spans.front().begin == 0);
      CHECK(spans.back().end == piece.size());
      for (size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].begin == spans[i - 1].end);
    }
  }
}

std::string fault(const char* model) {
  return test::error_of([&] { make_byte_bpe(Json::parse(model, "m"), "t.json"); }).what();
}

TEST_CASE("a wrong model is named") {
  using test::has;
  CHECK(has(fault(R"({"vocab": {"a": 0, "b": 0}, "merges": []})"), "id 0 of token 'b' is taken"));
  CHECK(has(fault(R"({"vocab": {"a": -1}, "merges": []})"), "id -1 of token 'a' is out of range"));
  CHECK(has(fault(R"({"vocab": {"a": 99999999}, "merges": []})"), "out of range"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": ["a b"]})"),
            "merges[0] needs token 'b', which the vocabulary lacks"));
  CHECK(has(fault(R"({"vocab": {"a": 0, "b": 1}, "merges": ["a b"]})"), "needs token 'ab'"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": ["a"]})"), "merges[0] 'a' is not two tokens"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [["a"]]})"), "merges[0] is no pair"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [], "dropout": 0.1})"), "dropout"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"})"),
            "end_of_word_suffix is not supported"));
  CHECK(has(fault(R"({"vocab": {"a": 0}, "merges": [], "unk_token": "u"})"),
            "unk_token 'u' is not in the vocabulary"));
}

}  // namespace
}  // namespace loongforge::data
