#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using test::has;

TEST_CASE("where there is no tokenizer the error says what was sought") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK_FALSE(Tokenizer::present(path));
  Error e = test::error_of([&] { Tokenizer::load(path); });
  CHECK(e.code() == ErrorCode::kNoInput);
  CHECK(has(e.what(), "has neither tokenizer.json nor tokenizer.model"));
  e = test::error_of([&] { Tokenizer::load(path + "/nothing"); });
  CHECK(e.code() == ErrorCode::kNoInput);
  folder.write("tokenizer.model", "x");
  CHECK(Tokenizer::present(path));
  CHECK(has(test::error_of([&] { Tokenizer::load(path); }).what(), "is no SentencePiece model"));
  folder.write("tokenizer.json", "{\"model\": ");
  e = test::error_of([&] { Tokenizer::load(path); });
  CHECK(e.code() == ErrorCode::kBadData);
  CHECK(has(e.where(), "tokenizer.json"));
  const std::string text = folder.write("notes.txt", "x");
  CHECK(has(test::error_of([&] { Tokenizer::load(text); }).what(), "is no tokenizer"));
  CHECK(tokenizer_files(path).size() == 2);
}

TEST_CASE("a folder's files are carried as they are") {
  const test::TemporaryFolder folder;
  const std::string odd = "{ \"model\" : 1 }\n\n";
  folder.write("tokenizer.json", odd);
  folder.write("chat_template.jinja", "{{ x }}");
  folder.write("additional_chat_templates/tool.jinja", "{{ y }}");
  folder.write("model.safetensors", "no");
  const auto files = tokenizer_files(folder.path().string());
  REQUIRE(files.size() == 3);
  CHECK(files[0].name == "tokenizer.json");
  CHECK(files[0].content == odd);
  CHECK(files[1].name == "chat_template.jinja");
  CHECK(files[2].name == "additional_chat_templates/tool.jinja");
}

TEST_CASE("older companions of tokenizer.json count") {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": []},
      "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})");
  folder.write("special_tokens_map.json", R"({"eos_token": {"content": "<e>"}, "bos_token": "b"})");
  folder.write("added_tokens.json", R"({"<e>": 5})");
  folder.write("generation_config.json", R"({"eos_token_id": [5, 6]})");
  const Tokenizer t = Tokenizer::load(folder.path().string());
  CHECK(t.eos_id() == 5);
  CHECK(t.bos_id() == 1);
  CHECK(t.eos_ids() == std::vector<int32_t>{5, 6});
}

}  // namespace
}  // namespace loongforge::data
