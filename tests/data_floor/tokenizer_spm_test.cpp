// Oracles: ids of SentencePiece itself; and those of the rules of LlamaTokenizer carried out with
// SentencePiece's Python package (spm_llama.jsonl).
#include "data/tokenizer_spm.h"

#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::golden;
using test::has;

TEST_CASE("every golden line of a BPE and a unigram model without configuration") {
  for (const char* name : {"spm_bpe", "spm_unigram"}) {
    const Tokenizer t = Tokenizer::load(golden(std::string(name) + ".model").string());
    CHECK(t.vocab_size() == 2400);
    CHECK(t.bos_id() == 1);
    CHECK(t.eos_id() == 2);
    CHECK_FALSE(t.pad_id().has_value());
    const std::vector<Json> lines = test::read_lines(golden(std::string(name) + ".jsonl"));
    REQUIRE(lines.size() == 75);
    for (const Json& line : lines) {
      const std::string& text = line.at("text").as_string();
      CAPTURE(text);
      std::vector<int32_t> ids = test::ids_of(line, "ids");
      CHECK(t.encode(text, false) == ids);
      CHECK(t.encode_with_offsets(text, false).ids == ids);
      CHECK(t.decode(ids, false) == line.at("decoded").as_string());
      StreamDecoder stream(t, false);
      std::string shown;
      for (int32_t id : ids) shown += stream.put(id);
      CHECK(shown + stream.finish() == line.at("decoded").as_string());
      ids.insert(ids.begin(), 1);
      CHECK(t.encode(text, true) == ids);
    }
  }
}

TEST_CASE("added tokens, the dummy prefix and the flags as LlamaTokenizer has them") {
  const std::vector<Json> lines = test::read_lines(golden("spm_llama.jsonl"));
  REQUIRE(lines.size() == 2);
  for (const Json& line : lines) {
    const test::TemporaryFolder folder;
    folder.write("tokenizer.model", read_text(golden("spm_bpe.model")));
    folder.write("tokenizer_config.json", line.at("config").dump());
    const Tokenizer t = Tokenizer::load(folder.path().string());
    CHECK(t.vocab_size() == 2403);
    CHECK(t.pad_id() == 2402);
    CHECK(t.prefix_ids() == std::vector<int32_t>{1});
    for (const Json& c : line.at("cases").as_array()) {
      const std::string& text = c.at("text").as_string();
      CAPTURE(text);
      CHECK(t.encode(text, false) == test::ids_of(c, "ids"));
      const Encoding e = t.encode_with_offsets(text, false);
      CHECK(e.ids == test::ids_of(c, "ids"));
      // Every token names text of its own place, in order, nothing left out.
      size_t covered = 0;
      for (const auto& [begin, end] : e.offsets) {
        CHECK(begin <= covered);
        CHECK(begin < end);
        covered = std::max(covered, end);
      }
      CHECK(covered == text.size());
    }
    CHECK(t.decode(t.encode("a<s> b</s>", false), true) ==
          (line.at("config").get_bool("legacy", false) ? "a  b" : "a b"));
  }
}

TEST_CASE("the files go along as they are and load again") {
  const test::TemporaryFolder folder;
  const std::string bytes = read_text(golden("spm_bpe.model"));
  const auto files = tokenizer_files(golden("spm_bpe.model").string());
  REQUIRE(files.size() == 1);
  CHECK(files[0].name == "tokenizer.model");
  CHECK(files[0].content == bytes);
  folder.write(files[0].name, files[0].content);
  CHECK(Tokenizer::present(folder.path().string()));
  CHECK(tokenizer_files(folder.path().string()).size() == 1);
  CHECK(Tokenizer::load(folder.path().string()).encode("Hello", false) ==
        Tokenizer::load(golden("spm_bpe.model").string()).encode("Hello", false));
}

TEST_CASE("bytes that spell no character, and spaces, decode as the library does it") {
  const Tokenizer t = Tokenizer::load(golden("spm_bpe.model").string());
  const auto id = [&](const char* token) { return *t.token_to_id(token); };
  const int32_t space = id("\xE2\x96\x81"), a = id("a");
  CHECK(t.decode(std::vector<int32_t>{space, a}, false) == "a");
  CHECK(t.decode(std::vector<int32_t>{space, space, a, space}, false) == " a ");
  CHECK(t.decode(std::vector<int32_t>{1, space, a}, false) == "<s> a");
  CHECK(t.decode(std::vector<int32_t>{1, space, a}, true) == "a");
  CHECK(t.decode(std::vector<int32_t>{id("<0xE9>"), id("<0xBE>"), id("<0x99>"), id("<0xE9>"),
                                      id("<0xBE>"), a},
                 false) ==
        "\xE9\xBE\x99\xEF\xBF\xBD\xEF\xBF\xBD"
        "a");
}

TEST_CASE("a damaged or foreign model is refused by name") {
  const test::TemporaryFolder folder;
  for (const std::string& content : {std::string(), std::string("x"), std::string("{}"),
                                     read_text(golden("spm_bpe.model")).substr(0, 20000)}) {
    const std::string path = folder.write("tokenizer.model", content);
    const Error e = test::error_of([&] { Tokenizer::load(folder.path().string()); });
    CHECK(e.code() == ErrorCode::kBadData);
    CHECK(e.where() == path);
  }
}

}  // namespace
}  // namespace loongforge::data
