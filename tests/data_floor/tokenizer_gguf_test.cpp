#include "data/tokenizer_gguf.h"

#include <cmath>

#include "data/spm_proto.h"
#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::GgufBuilder;
using test::has;

// Two letters, one merge, two control tokens.
GgufBuilder small(const char* pre) {
  GgufBuilder b;
  b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
  b.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>", "</s>", "[PAD5]", "<u>"});
  b.numbers("tokenizer.ggml.token_type", {1, 1, 1, 3, 3, 5, 4});
  b.texts("tokenizer.ggml.merges", {"a b"});
  b.number("tokenizer.ggml.bos_token_id", 3).number("tokenizer.ggml.eos_token_id", 4);
  return b;
}

TEST_CASE("a GGUF tokenizer written as Hugging Face files gives the same ids") {
  const test::TemporaryFolder folder;
  for (const TokenizerFile& file : tokenizer_files(test::golden("smollm2_tokenizer.gguf").string()))
    folder.write(file.name, file.content);
  const Tokenizer t = Tokenizer::load(folder.path().string());
  CHECK(t.eos_id() == 2);
  CHECK(t.pad_id() == 2);
  for (const Json& line : test::read_lines(test::golden("smollm2.jsonl"))) {
    const std::string& text = line.at("text").as_string();
    CHECK(t.encode(text, false) == test::ids_of(line, "ids"));
    CHECK(t.encode(text, true) == test::ids_of(line, "ids_special"));
    CHECK(t.decode(test::ids_of(line, "ids"), false) == line.at("decoded").as_string());
  }
}

TEST_CASE("token types, BOS rules and the pattern follow the metadata") {
  const test::TemporaryFolder folder;
  const Tokenizer gpt2 = Tokenizer::load(folder.write("a.gguf", small("gpt-2").bytes()));
  CHECK(gpt2.encode("ab<s><u>", true) == std::vector<int32_t>{2, 3, 6});
  CHECK(gpt2.is_special(3));
  CHECK_FALSE(gpt2.is_special(6));
  CHECK_FALSE(gpt2.token_to_id("[PAD5]").has_value());  // unused rows of the embedding
  const Tokenizer llama = Tokenizer::load(folder.write("b.gguf", small("llama-bpe").bytes()));
  CHECK(llama.encode("ab", true) == std::vector<int32_t>{3, 2});  // BOS by default
  const Tokenizer eos =
      Tokenizer::load(folder.write("c.gguf", small("qwen2")
                                                 .flag("tokenizer.ggml.add_bos_token", false)
                                                 .flag("tokenizer.ggml.add_eos_token", true)
                                                 .number("tokenizer.ggml.eot_token_id", 6)
                                                 .bytes()));
  CHECK(eos.encode("ab", true) == std::vector<int32_t>{2, 4});
  CHECK(eos.eos_ids() == std::vector<int32_t>{4, 6});
}

TEST_CASE("a command-r or starcoder tokenizer splits digits off, a gpt-2 one does not") {
  const test::TemporaryFolder folder;
  GgufBuilder with_digits = small("starcoder");
  const Json pre =
      read_gguf_tokenizer(formats::GgufFile(folder.write("d.gguf", with_digits.bytes())))
          .tokenizer.at("pre_tokenizer");
  CHECK(pre.at("pretokenizers").as_array()[0].get_string("type", "") == "Digits");
}

// What llama.cpp's converter writes for a SentencePiece model.
GgufBuilder from_spm(const SpmProto& proto) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (const SpmPiece& piece : proto.pieces) {
    tokens.push_back(piece.text);
    scores.push_back(piece.score);
    types.push_back(static_cast<int32_t>(piece.type));
  }
  GgufBuilder b;
  b.text("tokenizer.ggml.model", "llama").text("tokenizer.ggml.pre", "default");
  b.texts("tokenizer.ggml.tokens", tokens).reals("tokenizer.ggml.scores", scores);
  b.numbers("tokenizer.ggml.token_type", types);
  b.number("tokenizer.ggml.bos_token_id", 1).number("tokenizer.ggml.eos_token_id", 2);
  return b.number("tokenizer.ggml.unknown_token_id", 0);
}

// Oracle: the ids of SentencePiece with the model that the scores came from.
TEST_CASE("a SentencePiece vocabulary with scores gives SentencePiece's ids, exported too") {
  const SpmProto proto = parse_spm_proto(read_text(test::golden("spm_bpe.model")), "m");
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a.gguf", from_spm(proto).bytes());
  for (const TokenizerFile& file : tokenizer_files(path)) folder.write(file.name, file.content);
  for (const std::string& source : {path, folder.path().string()}) {
    const Tokenizer t = Tokenizer::load(source);
    CHECK(t.eos_ids() == std::vector<int32_t>{2});
    for (const Json& line : test::read_lines(test::golden("spm_bpe.jsonl"))) {
      const std::string& text = line.at("text").as_string();
      CAPTURE(text);
      // Control tokens in a text are tokens here, as every reader of such files has it.
      if (has(text, "<s>") || has(text, "<unk>")) continue;
      std::vector<int32_t> ids = test::ids_of(line, "ids");
      CHECK(t.encode(text, false) == ids);
      CHECK(t.decode(ids, false) == line.at("decoded").as_string());
      ids.insert(ids.begin(), 1);
      CHECK(t.encode(text, true) == ids);  // BOS by default
    }
  }
  const std::string bare = folder.write(
      "b.gguf", from_spm(proto).flag("tokenizer.ggml.add_space_prefix", false).bytes());
  const Tokenizer t = Tokenizer::load(bare);
  CHECK(t.id_to_token(t.encode("the", false)[0]).substr(0, 1) == "t");
}

// Worked out by hand from llama.cpp's patterns.
TEST_CASE("pre-tokenizers by name cut where their patterns say") {
  const test::TemporaryFolder folder;
  std::vector<std::string> tokens;
  for (char c : std::string("Abcd1234.!x")) tokens.push_back(std::string(1, c));
  tokens.insert(tokens.end(), {"12", "1234", "34", "bA", ".!", "!x"});
  const auto encode = [&](const char* pre, const char* text) {
    GgufBuilder b;
    b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
    b.texts("tokenizer.ggml.tokens", tokens);
    b.texts("tokenizer.ggml.merges", {"1 2", "3 4", "12 34", "b A", ". !", "! x"});
    std::string found;
    const Tokenizer t = Tokenizer::load(folder.write("p.gguf", b.bytes()));
    for (int32_t id : t.encode(text, false)) found += std::string(t.id_to_token(id)) + "|";
    return found;
  };
  CHECK(encode("default", "1234.!x") == "12|3|4|.!|x|");
  CHECK(encode("gpt-2", "1234.!x") == "1234|.!|x|");
  CHECK(encode("llama-bpe", "1234!x") == "12|3|4|!x|");
  CHECK(encode("qwen2", "1234!x") == "1|2|3|4|!x|");
  CHECK(encode("tekken", "12bA") == "1|2|b|A|");
  CHECK(encode("qwen2", "12bA") == "1|2|bA|");
}

std::string fault(const GgufBuilder& builder) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("x.gguf", builder.bytes());
  const Error e = test::error_of([&] { Tokenizer::load(path); });
  CHECK(has(e.where(), path));
  return e.what();
}

TEST_CASE("what is missing or unknown is named") {
  CHECK(has(fault(small("no-such-model")), "tokenizer.ggml.pre 'no-such-model' is not supported"));
  GgufBuilder t5;
  t5.text("tokenizer.ggml.model", "t5").text("tokenizer.ggml.pre", "default");
  CHECK(has(fault(t5), "tokenizer.ggml.model 't5' is not supported"));
  GgufBuilder llama;
  llama.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "b"});
  CHECK(has(fault(llama), "tokenizer.ggml.scores has 0 entries, tokenizer.ggml.tokens has 2"));
  GgufBuilder nan = llama;
  CHECK(has(fault(nan.reals("tokenizer.ggml.scores", {1.0f, NAN})), "the score of token 1"));
  GgufBuilder twice;
  twice.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "a"});
  CHECK(has(fault(twice.reals("tokenizer.ggml.scores", {1.0f, 2.0f})), "has 'a' twice"));
  GgufBuilder empty;
  empty.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  CHECK(has(fault(empty), "tokenizer.ggml.tokens is missing"));
  GgufBuilder far = small("gpt-2");
  CHECK(has(fault(far.number("tokenizer.ggml.padding_token_id", 70)),
            "tokenizer.ggml.padding_token_id 70 is beyond the vocabulary of 7"));
  GgufBuilder uneven;
  uneven.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  uneven.texts("tokenizer.ggml.tokens", {"a"}).numbers("tokenizer.ggml.token_type", {1, 1});
  CHECK(has(fault(uneven), "tokenizer.ggml.token_type has 2 entries"));
}

}  // namespace
}  // namespace loongforge::data
