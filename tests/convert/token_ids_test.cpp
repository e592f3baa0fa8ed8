#include "convert/token_ids.h"

#include <doctest/doctest.h>

#include "convert_support.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using convert::resolve_token_ids;
using support::Json;

namespace {

formats::HfConfig config(std::optional<int64_t> pad) {
  formats::HfConfig out;
  out.vocab_size = 10;
  out.bos_token_id = 1;
  out.eos_token_ids = {2};
  out.pad_token_id = pad;
  return out;
}

data::Tokenizer tokenizer(const test::TempDir& dir, const char* pad) {
  std::filesystem::create_directories(dir / "t");
  test::write_tokenizer(dir / "t", pad);  // eos 3, <pad> 4
  return data::Tokenizer::load((dir / "t").string());
}

}  // namespace

TEST_CASE("ids in the block are twice the Hugging Face ids") {
  const convert::TokenIds ids = resolve_token_ids(config(0), nullptr, nullptr, std::nullopt);
  CHECK(ids.block.dump() == R"({"id_scale":2,"vocab_size":10,"bos":2,"eos":[4],"pad":0})");
  CHECK(ids.pad == 0);
  CHECK(ids.warnings.empty());
}

TEST_CASE("stop ids of tokenizer, config and generation_config.json, the tokenizer's first") {
  const test::TempDir dir;
  const data::Tokenizer own = tokenizer(dir, "<pad>");
  const formats::GenerationConfig generation = formats::parse_generation_config(
      Json::parse(R"({"eos_token_id": [2, 7]})", "t"), "generation_config.json");
  const convert::TokenIds ids = resolve_token_ids(config(4), &generation, &own, std::nullopt);
  CHECK(ids.block.at("eos").dump() == "[6,4,14]");
  CHECK(ids.pad == 4);
}

TEST_CASE("the pad rule") {
  const test::TempDir dir;
  const data::Tokenizer with = tokenizer(dir, "<pad>"), without = tokenizer(dir, nullptr);
  CHECK(resolve_token_ids(config(std::nullopt), nullptr, nullptr, std::nullopt).pad ==
        std::nullopt);
  CHECK_FALSE(resolve_token_ids(config(std::nullopt), nullptr, nullptr, std::nullopt)
                  .block.contains("pad"));
  CHECK(resolve_token_ids(config(std::nullopt), nullptr, &with, std::nullopt).pad == 4);
  CHECK(resolve_token_ids(config(5), nullptr, &without, std::nullopt).pad == 5);
  CHECK(resolve_token_ids(config(5), nullptr, &with, 6).pad == 6);
  LF_CHECK_ERROR(resolve_token_ids(config(5), nullptr, &with, std::nullopt), ErrorCode::kBadData,
                 "pad_token_id mismatch");
  // Neither says one: the eos id is proposed.
  LF_CHECK_ERROR(resolve_token_ids(config(std::nullopt), nullptr, &without, std::nullopt),
                 ErrorCode::kBadData, "--pad_token_id 3");
  // What the configuration does not say, generation_config.json may.
  const formats::GenerationConfig generation = formats::parse_generation_config(
      Json::parse(R"({"pad_token_id": 8})", "t"), "generation_config.json");
  CHECK(resolve_token_ids(config(std::nullopt), &generation, &without, std::nullopt).pad == 8);
}

TEST_CASE("ids outside of the vocabulary are said") {
  const convert::TokenIds ids = resolve_token_ids(config(10), nullptr, nullptr, std::nullopt);
  REQUIRE(ids.warnings.size() == 1);
  CHECK(ids.warnings[0].find("pad token id 10 is outside") != std::string::npos);
  LF_CHECK_ERROR(resolve_token_ids(config(0), nullptr, nullptr, 10), ErrorCode::kUsage,
                 "--pad_token_id 10 is outside");
}

TEST_CASE("generation_config.json of a source without one") {
  CHECK(
      convert::generation_config_of(Json::parse(R"({"id_scale":2,"bos":2,"eos":[4],"pad":4})", "t"))
          .dump() ==
      R"({"_from_model_config":true,"bos_token_id":1,"eos_token_id":2,"pad_token_id":2})");
  CHECK(convert::generation_config_of(Json::parse(R"({"id_scale":2,"eos":[4,6]})", "t")).dump() ==
        R"({"_from_model_config":true,"eos_token_id":[2,3]})");
  CHECK(convert::generation_config_of(Json::parse(R"({"id_scale":2,"eos":[]})", "t")).dump() ==
        R"({"_from_model_config":true})");
}
