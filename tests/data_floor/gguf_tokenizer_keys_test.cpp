#include "data/gguf_tokenizer_keys.h"

#include <doctest/doctest.h>

#include <fstream>

#include "data/chat_template.h"
#include "data/tokenizer.h"
#include "data/tokenizer_gguf.h"
#include "formats/gguf.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/json.h"
#include "support/temp_dir.h"

using namespace loongforge;
using data::GgufTokenizerKeys;
using support::Json;
using test::TempDir;

namespace {

std::filesystem::path test_data() { return test::data_dir() / "data"; }

const formats::GgufValue& value_of(const GgufTokenizerKeys& keys, const std::string& key) {
  for (const auto& [name, value] : keys.keys) {
    if (name == key) return value;
  }
  FAIL("no key " << key);
  std::abort();
}

void write_tokenizer(const TempDir& dir, const std::string& from) {
  for (const data::TokenizerFile& file : data::tokenizer_files(from))
    test::write_file(dir / file.name, file.content);
}

// A GGUF file of these keys and nothing else.
std::filesystem::path write_gguf(const TempDir& dir, const GgufTokenizerKeys& keys) {
  formats::GgufKeys all = keys.keys;
  all.emplace_back("general.architecture", formats::GgufValue{std::string("llama")});
  formats::GgufWriter writer(dir / "keys.gguf", all, {});
  writer.finish();
  return dir / "keys.gguf";
}

// Both give the same ids for a few texts.
void check_same_ids(const std::string& a, const std::string& b) {
  const data::Tokenizer one = data::Tokenizer::load(a), other = data::Tokenizer::load(b);
  for (const char* text : {"Hello world", "  two  spaces\n", "12345 things, isn't it?",
                           "caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd", ""}) {
    CAPTURE(text);
    CHECK(one.encode(text, true) == other.encode(text, true));
    CHECK(one.encode(text, false) == other.encode(text, false));
  }
  CHECK(one.bos_id() == other.bos_id());
  CHECK(one.eos_ids() == other.eos_ids());
  CHECK(one.unk_id() == other.unk_id());
}

Json array_of(const std::vector<const char*>& texts) {
  Json out = Json::array();
  for (const char* text : texts) out.push_back(text);
  return out;
}

// A SentencePiece BPE in tokenizer.json: a, b, ab, abab and what the merges say.
Json spm_document(const std::vector<const char*>& merges) {
  return Json::parse(R"({"added_tokens": [
      {"id": 0, "content": "<unk>", "special": true},
      {"id": 1, "content": "<s>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "_"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "_"}]},
    "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true,
      "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "ab": 3, "abab": 4, "a": 5, "b": 6, "aba": 7},
      "merges": )" + array_of(merges).dump() +
                         "}}",
                     "document");
}

}  // namespace

TEST_CASE("gguf_tokenizer_keys: the real SmolLM2 tokenizer comes back key for key") {
  const std::filesystem::path source = test_data() / "smollm2_tokenizer.gguf";
  TempDir dir;
  write_tokenizer(dir, source.string());
  const formats::GgufFile original(source);
  const auto rows = static_cast<int64_t>(original.get_strings("tokenizer.ggml.tokens")->size());
  const GgufTokenizerKeys keys = data::gguf_tokenizer_keys(dir.path().string(), rows + 3, 2);
  CHECK(keys.unsaid.empty());
  CHECK(keys.warning.empty());
  const formats::GgufFile made(write_gguf(dir, keys));
  std::vector<std::string> tokens = *made.get_strings("tokenizer.ggml.tokens");
  REQUIRE(static_cast<int64_t>(tokens.size()) == rows + 3);
  CHECK(tokens.back() == "[PAD" + std::to_string(rows + 2) + "]");
  CHECK(made.get_ints("tokenizer.ggml.token_type")->back() == 5);
  tokens.resize(static_cast<size_t>(rows));
  CHECK(tokens == *original.get_strings("tokenizer.ggml.tokens"));
  CHECK(*made.get_strings("tokenizer.ggml.merges") ==
        *original.get_strings("tokenizer.ggml.merges"));
  std::vector<int64_t> types = *made.get_ints("tokenizer.ggml.token_type");
  types.resize(static_cast<size_t>(rows));
  CHECK(types == *original.get_ints("tokenizer.ggml.token_type"));
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.chat_template"})
    CHECK(*made.get_string(key) == *original.get_string(key));
  for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                          "tokenizer.ggml.padding_token_id", "tokenizer.ggml.unknown_token_id"})
    CHECK(made.get_int(key) == original.get_int(key));
  CHECK(made.get_bool("tokenizer.ggml.add_bos_token") ==
        original.get_bool("tokenizer.ggml.add_bos_token"));
  check_same_ids(dir.path().string(), (dir / "keys.gguf").string());
  LF_CHECK_ERROR(data::gguf_tokenizer_keys(dir.path().string(), rows - 1, 2), ErrorCode::kBadData,
                 "the embedding has");
}

TEST_CASE("gguf_tokenizer_keys: ways to split and their names") {
  TempDir dir;
  write_tokenizer(dir, (test_data() / "smollm2_tokenizer.gguf").string());
  Json document = support::read_json((dir / "tokenizer.json").string());
  const int64_t rows = 49152;
  const auto named = [&](const char* pre, bool whole_words, const char* normalizer) -> std::string {
    document.set("pre_tokenizer", Json::parse(pre, "pre"));
    document.find("model")->set("ignore_merges", whole_words);
    document.set("normalizer", Json::parse(normalizer, "normalizer"));
    test::write_file(dir / "tokenizer.json", document.dump());
    const GgufTokenizerKeys keys = data::gguf_tokenizer_keys(dir.path().string(), rows, {});
    CHECK(keys.unsaid.empty() == !keys.keys.empty());
    return keys.unsaid.empty() ? std::get<std::string>(value_of(keys, "tokenizer.ggml.pre").value)
                               : keys.unsaid;
  };
  const std::string words =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  CHECK(named(words.c_str(), false, "null") == "gpt-2");
  CHECK(
      named((R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)" +
             words + "]}")
                .c_str(),
            false, "null") == "starcoder");
  CHECK(
      named((R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},)" +
             words + "]}")
                .c_str(),
            false, "null")
          .find("has no name in GGUF") != std::string::npos);
  CHECK(named(words.c_str(), false, R"({"type":"NFC"})").find("its normalizer") == 0);
  CHECK(named(words.c_str(), true, "null").find("its pre_tokenizer has no name") == 0);
  CHECK(named(R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})", false, "null")
            .find("puts a space before") != std::string::npos);
  for (const char* pre : {"llama-bpe", "qwen2", "dbrx", "tekken"}) {
    const auto known = data::gguf_pre(pre);
    REQUIRE(known.has_value());
    CHECK(named(known->pre_tokenizer.dump().c_str(), known->whole_words,
                known->nfc ? R"({"type":"NFC"})" : "null") == pre);
  }
}

TEST_CASE(
    "gguf_tokenizer_keys: SentencePiece scores stand for the merges, or it is said that they "
    "cannot") {
  TempDir dir;
  const auto keys_of = [&](const std::vector<const char*>& merges) {
    test::write_file(dir / "tokenizer.json", spm_document(merges).dump());
    return data::gguf_tokenizer_keys(dir.path().string(), 8, {});
  };
  const GgufTokenizerKeys keys = keys_of({"a b", "ab a", "ab ab", "aba b"});
  REQUIRE(keys.unsaid.empty());
  CHECK(std::get<std::string>(value_of(keys, "tokenizer.ggml.model").value) == "llama");
  CHECK(std::get<std::vector<double>>(value_of(keys, "tokenizer.ggml.scores").value) ==
        std::vector<double>{0, 0, 0, -1, -3, -4, -4, -2});
  CHECK(std::get<std::vector<int64_t>>(value_of(keys, "tokenizer.ggml.token_type").value) ==
        std::vector<int64_t>{2, 3, 6, 1, 1, 1, 1, 1});
  CHECK(std::get<bool>(value_of(keys, "tokenizer.ggml.add_space_prefix").value));
  CHECK(keys_of({"a b", "ab a", "ab ab"}).unsaid == "its merges are not all that its tokens allow");
  CHECK(keys_of({"a b", "ab ab", "ab a", "aba b"}).unsaid ==
        "its merges are in no order of tokens");
  CHECK(keys_of({"a b", "a a"}).unsaid == "a merge makes no token");
}

TEST_CASE("gguf_tokenizer_keys: a tokenizer.model carries its own scores") {
  TempDir dir;
  std::filesystem::copy(test_data() / "spm_bpe.model", dir / "tokenizer.model");
  const data::Tokenizer tokenizer = data::Tokenizer::load(dir.path().string());
  const GgufTokenizerKeys keys =
      data::gguf_tokenizer_keys(dir.path().string(), tokenizer.vocab_size() + 2, {});
  CHECK(keys.unsaid == "");
  check_same_ids(dir.path().string(), write_gguf(dir, keys).string());
  std::filesystem::remove(dir / "tokenizer.model");
  std::filesystem::copy(test_data() / "spm_unigram.model", dir / "tokenizer.model");
  CHECK(data::gguf_tokenizer_keys(dir.path().string(), 1 << 20, {}).unsaid.find("unigram") !=
        std::string::npos);
}
