#include "convert/tied.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "convert/convert_support.h"
#include "support/temp_dir.h"

using namespace loongforge;
using support::Json;

namespace {

// smollm2, which ties its head, with a head of its own in the file: the embedding, of which one bit
// may be turned.
std::filesystem::path with_head(const std::filesystem::path& folder, bool differs) {
  const std::filesystem::path golden = test::model_dir("smollm2") / "checkpoint";
  std::vector<test::MadeTensor> tensors = test::load_tensors(golden);
  test::MadeTensor head = *std::find_if(tensors.begin(), tensors.end(), [](const auto& t) {
    return t.name == "model.embed_tokens.weight";
  });
  head.name = "lm_head.weight";
  if (differs) head.bytes[head.bytes.size() - 2] ^= 1;  // the last element
  tensors.push_back(std::move(head));
  test::write_checkpoint(folder, tensors, test::load_config(golden));
  return folder;
}

}  // namespace

TEST_CASE("a head that is tied and held is stored once and written twice") {
  const test::TempDir dir;
  const auto from = with_head(dir / "same", false);
  const auto report = convert::import_model(test::import_options(from, dir / "ir"));
  CHECK(report.warnings.size() == 1);  // no tokenizer
  const ir::Reader reader(dir / "ir");
  CHECK(reader.model().find_tensor("lm_head.weight")->source_had_both);
  CHECK(reader.model().find_tensor("lm_head.weight")->alias_of == "model.embed_tokens.weight");
  convert::export_model(test::export_options(dir / "ir", dir / "hf"));
  test::check_same_checkpoint(*formats::open_tensor_source(from),
                              *formats::open_tensor_source(dir / "hf"));
}

TEST_CASE("a tied head that differs is kept, untied, with a warning") {
  const test::TempDir dir;
  const auto from = with_head(dir / "differs", true);
  const auto options = test::import_options(from, dir / "ir");
  const auto report = convert::import_model(options);
  REQUIRE(report.warnings.size() == 2);
  CHECK(report.warnings[0].find("lm_head.weight differs from model.embed_tokens.weight") !=
        std::string::npos);
  CHECK(report.warnings[0].find("untied") != std::string::npos);
  CHECK(report.aliases == 0);
  const ir::Reader reader(dir / "ir");
  CHECK(reader.model().graph.nodes.back().params.at("weight") == "lm_head.weight");
  CHECK_FALSE(reader.model().config.get_bool("tie_word_embeddings", true));
  CHECK(reader.model().find_tensor("lm_head.weight")->alias_of.empty());
  // The export says so as well, for loaders that would tie the two again.
  convert::export_model(test::export_options(dir / "ir", dir / "hf"));
  test::check_same_checkpoint(*formats::open_tensor_source(from),
                              *formats::open_tensor_source(dir / "hf"));
  CHECK_FALSE(test::load_config(dir / "hf").get_bool("tie_word_embeddings", true));
}

TEST_CASE("values are compared over all rows, NaN with NaN") {
  const test::TempDir dir;
  const uint16_t nan = 0x7FC0;
  const auto make = [](uint16_t first, uint16_t last) {
    std::vector<uint8_t> bytes(2 * 600 * 2048);
    std::copy_n(reinterpret_cast<const uint8_t*>(&first), 2, bytes.begin());
    std::copy_n(reinterpret_cast<const uint8_t*>(&last), 2, bytes.end() - 2);
    return bytes;
  };
  const std::vector<int64_t> shape = {600, 2048};
  std::vector<test::MadeTensor> tensors = {
      {"a", tensor::DType::kBF16, shape, make(nan, 0x3F80)},
      {"b", tensor::DType::kBF16, shape, make(nan, 0x3F80)},
      {"c", tensor::DType::kBF16, shape, make(nan, 0x3F81)},
      {"d", tensor::DType::kBF16, {2048, 600}, make(nan, 0x3F80)}};
  test::write_checkpoint(dir / "m", tensors, Json::object());
  const auto source = formats::open_tensor_source(dir / "m");
  CHECK(convert::same_values(*source, source->at("a"), source->at("b")));
  CHECK_FALSE(convert::same_values(*source, source->at("a"), source->at("c")));
  CHECK_FALSE(convert::same_values(*source, source->at("a"), source->at("d")));
}
