// Oracles: ids and texts of the reference tokenizers (golden files), and properties that hold for
// any text.
#include "data/tokenizer.h"

#include <cstdio>
#include <thread>

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::golden;
using test::has;
using test::ids_of;

void check_cases(const Tokenizer& tokenizer, const std::vector<Json>& cases) {
  for (const Json& line : cases) {
    const std::string& text = line.at("text").as_string();
    CAPTURE(text);
    const std::vector<int32_t> ids = ids_of(line, "ids"), special = ids_of(line, "ids_special");
    CHECK(tokenizer.encode(text, false) == ids);
    CHECK(tokenizer.encode(text, true) == special);
    CHECK(tokenizer.encode_with_offsets(text, true).ids == special);
    CHECK(tokenizer.decode(ids, false) == line.at("decoded").as_string());
    CHECK(tokenizer.decode(special, true) == line.at("decoded_skip").as_string());
  }
}

const Tokenizer& smollm2() {
  static const Tokenizer tokenizer = Tokenizer::load(golden("smollm2_tokenizer.gguf").string());
  return tokenizer;
}

TEST_CASE("every golden line of SmolLM2's GGUF tokenizer") {
  const std::vector<Json> lines = test::read_lines(golden("smollm2.jsonl"));
  REQUIRE(lines.size() == 116);
  check_cases(smollm2(), lines);
}

TEST_CASE("every golden line of the large tokenizers") {
  for (const char* name : {"llama3", "qwen3", "mistral"}) {
    const std::filesystem::path shared = test::shared_dir();
    const std::filesystem::path folder = shared / "data" / "tokenizers" / name;
    if (shared.empty() || !std::filesystem::exists(folder / "tokenizer.json")) {
      std::printf("SKIPPED: tokenizer %s: no shared data (LOONGFORGE_TEST_DATA)\n", name);
      continue;
    }
    const std::vector<Json> lines =
        test::read_lines(shared / "golden" / "tokenizers" / (std::string(name) + ".jsonl"));
    REQUIRE(lines.size() == 116);
    check_cases(Tokenizer::load(folder.string()), lines);
  }
}

TEST_CASE("every part and flag against small reference tokenizers") {
  std::vector<Json> lines = test::read_lines(golden("tiny_tokenizers.jsonl"));
  REQUIRE(lines.size() == 22);
  for (const Json& line : test::read_lines(golden("tiny_spm_tokenizers.jsonl")))
    lines.push_back(line);
  REQUIRE(lines.size() == 40);
  for (const Json& line : lines) {
    const std::string& name = line.at("name").as_string();
    CAPTURE(name);
    check_cases(Tokenizer::from_json(line.at("tokenizer"), Json(), Json(), name),
                line.at("cases").as_array());
  }
}

TEST_CASE("even ids are twice the ids and an odd one is refused") {
  const std::string text = "The capital of France";
  std::vector<int32_t> ids = smollm2().encode(text, false);
  const std::vector<int32_t> even = smollm2().encode_ir(text, false);
  REQUIRE(even.size() == ids.size());
  for (size_t i = 0; i < ids.size(); ++i) CHECK(even[i] == 2 * ids[i]);
  CHECK(smollm2().decode_ir(even, false) == text);
  const std::vector<int32_t> odd = {even[0], 7};
  CHECK(has(test::error_of([&] { smollm2().decode_ir(odd, false); }).message(), "id 7 is odd"));
}

TEST_CASE("special tokens and ids by name") {
  const Tokenizer& t = smollm2();
  CHECK(t.vocab_size() == 49152);
  CHECK(t.bos_id() == 1);
  CHECK(t.eos_id() == 2);
  CHECK(t.pad_id() == 2);
  CHECK(t.unk_id() == 0);
  CHECK(t.eos_ids() == std::vector<int32_t>{2});
  CHECK(t.prefix_ids().empty());
  CHECK(t.token_to_id("<|im_end|>") == 2);
  CHECK(t.id_to_token(2) == "<|im_end|>");
  CHECK(t.is_special(2));
  CHECK_FALSE(t.is_special(100));
  CHECK_FALSE(t.token_to_id("no such token").has_value());
  CHECK(t.id_to_token(49152).empty());
  CHECK(t.id_to_token(-1).empty());
  CHECK(t.special_tokens().get_string("eos_token", "") == "<|im_end|>");
  const std::vector<int32_t> unknown = {504, 1'000'000, -3};
  CHECK(t.decode(unknown, false) == "The");
}

TEST_CASE("offsets name the bytes that each id stands for") {
  const std::string text = "<|im_start|>user\nHi \xE4\xB8\xAD\xE6\x96\x87 don't<|im_end|>";
  const Encoding e = smollm2().encode_with_offsets(text, true);
  REQUIRE(e.ids.size() == e.offsets.size());
  size_t at = 0;
  std::string all;
  for (const auto& [begin, end] : e.offsets) {
    CHECK(begin == at);  // nothing is normalised: the ranges follow each other
    at = end;
    all += text.substr(begin, end - begin);
  }
  CHECK(all == text);
  CHECK(e.offsets[0] == std::pair<size_t, size_t>{0, 12});
}

TEST_CASE("offsets through normalisation name the whole changed stretch") {
  for (const Json& line : test::read_lines(golden("tiny_tokenizers.jsonl"))) {
    if (line.at("name").as_string() != "NFC") continue;
    const Tokenizer t = Tokenizer::from_json(line.at("tokenizer"), Json(), Json(), "NFC");
    const std::string text = "xA\xCC\x8Ay <s>z";  // A and a combining ring become one letter
    const Encoding e = t.encode_with_offsets(text, false);
    REQUIRE(e.ids.size() >= 4);
    for (size_t i = 1; i < e.offsets.size(); ++i)
      CHECK(e.offsets[i].first >= e.offsets[i - 1].first);
    CHECK(e.offsets.front() == std::pair<size_t, size_t>{0, 1});
    CHECK(e.offsets[1] == std::pair<size_t, size_t>{1, 4});
    CHECK(e.offsets.back() == std::pair<size_t, size_t>{9, 10});
    CHECK(e.offsets[e.offsets.size() - 2] == std::pair<size_t, size_t>{6, 9});
    return;
  }
  FAIL("no NFC tokenizer among the goldens");
}

TEST_CASE("ill-formed text is refused with its place") {
  const Error e = test::error_of([] { smollm2().encode("ab\xFFz", false); });
  CHECK(has(e.message(), "not valid UTF-8 at byte 2"));
}

TEST_CASE("a stream of ids gives the text of all ids, never half a character") {
  for (const std::string& text :
       {std::string("Hello, world!  \n ok"),
        std::string("\xF0\x9F\x98\x80 \xE9\xBE\x99\xE8\x8A\xAF"), std::string("a<|im_end|>b")}) {
    const std::vector<int32_t> ids = smollm2().encode(text, false);
    StreamDecoder stream(smollm2(), false);
    std::string shown;
    for (int32_t id : ids) {
      const std::string piece = stream.put(id);
      CHECK_FALSE(has(piece, "\xEF\xBF\xBD"));
      shown += piece;
    }
    shown += stream.finish();
    CHECK(shown == text);
  }
}

TEST_CASE("a stream cut within a character ends in one replacement") {
  const std::vector<int32_t> ids = smollm2().encode("\xF0\x9F\x98\x80", false);
  REQUIRE(ids.size() > 1);
  StreamDecoder stream(smollm2(), false);
  CHECK(stream.put(ids[0]).empty());
  CHECK(stream.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("threads encode with one tokenizer") {
  const std::vector<Json> lines = test::read_lines(golden("smollm2.jsonl"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (const Json& line : lines)
        wrong[t] += smollm2().encode(line.at("text").as_string(), false) != ids_of(line, "ids");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("BOS and EOS follow add_bos_token and add_eos_token") {
  Json tokenizer;
  for (const Json& line : test::read_lines(golden("tiny_tokenizers.jsonl")))
    if (line.at("name").as_string() == "prefix space, template") tokenizer = line.at("tokenizer");
  const auto load = [&](const char* config) {
    return Tokenizer::from_json(tokenizer, Json::parse(config, "config"), Json(), "tiny");
  };
  const int32_t bos = *load("{}").token_to_id("<s>"), eos = *load("{}").token_to_id("</s>");
  const Tokenizer both = load("{}");  // the post-processor's own
  CHECK(both.prefix_ids() == std::vector<int32_t>{bos});
  CHECK(both.suffix_ids() == std::vector<int32_t>{eos});
  const Tokenizer neither =
      load(R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false,
               "add_eos_token": false})");
  CHECK(neither.encode("a", true) == neither.encode("a", false));
  const Tokenizer swapped =
      load(R"({"bos_token": {"content": "</s>"}, "add_bos_token": true, "add_eos_token": false})");
  CHECK(swapped.prefix_ids() == std::vector<int32_t>{eos});
  CHECK(swapped.suffix_ids().empty());
}

TEST_CASE("split_special_tokens leaves special tokens in the text as text") {
  Json tokenizer;
  for (const Json& line : test::read_lines(golden("tiny_tokenizers.jsonl")))
    if (line.at("name").as_string() == "prefix space, template") tokenizer = line.at("tokenizer");
  const Tokenizer t = Tokenizer::from_json(
      tokenizer, Json::parse(R"({"split_special_tokens": true})", "config"), Json(), "tiny");
  CHECK(t.encode("<s>", false).size() > 1);
  CHECK(t.decode(t.encode("<s>", false), false) == " <s>");
}

TEST_CASE("where generation stops: eos first, then generation_config.json's") {
  const Json tokenizer = test::read_lines(golden("tiny_tokenizers.jsonl"))[0].at("tokenizer");
  const Json config = Json::parse(R"({"eos_token": "</s>"})", "config");
  const Tokenizer t = Tokenizer::from_json(
      tokenizer, config, Json::parse(R"({"eos_token_id": [5, 7]})", "generation"), "tiny");
  CHECK(t.eos_ids() == std::vector<int32_t>{*t.eos_id(), 5, 7});
  const Tokenizer one =
      Tokenizer::from_json(tokenizer, Json(), Json::parse(R"({"eos_token_id": 9})", "g"), "tiny");
  CHECK(one.eos_ids() == std::vector<int32_t>{9});
  CHECK_FALSE(one.eos_id().has_value());
}

}  // namespace
}  // namespace loongforge::data
