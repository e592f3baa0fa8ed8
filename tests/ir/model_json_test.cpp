#include "ir/model_json.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "tiny_model.h"

using namespace loongforge;

TEST_CASE("a description is the same after text and back") {
  ir::Model model = test::tiny_description();
  ir::TensorEntry entry = test::tiny_entry("a", tensor::DType::kE4M3LA, {256, 130}, 128);
  entry.file = "weights-00001-of-00001.lir";
  entry.offset = 4096;
  entry.bytes = 256 * 160;
  entry.scale = "a.scale";
  entry.crc = "a.crc";
  entry.source_scale = {"a_scale", {3, 1, 1}};
  const std::vector<std::string> entry_companions = {"a.input_scale", "a.zero"};
  entry.companions = entry_companions;
  model.tensors.push_back(entry);
  entry = test::tiny_entry("a.crc", tensor::DType::kU32, {2});
  entry.file = "weights-00001-of-00001.lir";
  entry.crc32c = 0xFEDCBA98u;
  model.tensors.push_back(entry);
  entry = test::tiny_entry("b", tensor::DType::kE4M3LA, {256, 130});
  entry.alias_of = "a";
  model.tensors.push_back(entry);

  const std::string text = ir::model_to_text(model);
  const ir::Model back = ir::model_from_text(text, "test");
  CHECK(ir::model_to_text(back) == text);
  CHECK(back.tensors[0].block_cols == 128);
  CHECK(back.tensors[0].offset == 4096);
  CHECK(back.tensors[0].source_scale.name == "a_scale");
  CHECK(back.tensors[0].source_scale.shape == std::vector<int64_t>{3, 1, 1});
  CHECK(back.tensors[0].companions == entry_companions);
  CHECK(back.companion_names() ==
        std::set<std::string_view>{"a.scale", "a.crc", "a.input_scale", "a.zero"});
  CHECK(back.tensors[1].crc32c == 0xFEDCBA98u);
  CHECK(back.tensors[2].alias_of == "a");
  CHECK_FALSE(back.tensors[2].source_had_both);
  CHECK(back.token_ids == model.token_ids);
  CHECK(back.graph.nodes[2].params.at("weight") == "proj.weight");
}

TEST_CASE("what is no description is refused by name") {
  LF_CHECK_ERROR(ir::model_from_text("[]", "x.json"), ErrorCode::kBadData, "x.json");
  LF_CHECK_ERROR(ir::model_from_text("{}", "x.json"), ErrorCode::kBadData, "is not of format");
  LF_CHECK_ERROR(ir::model_from_text("{", "x.json"), ErrorCode::kBadData, "x.json");
}
