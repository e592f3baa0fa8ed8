#include "formats/sharded.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/log.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/json.h"
#include "support/temp_dir.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::support::Json;
using loongforge::tensor::DType;
using loongforge::test::TempDir;
using loongforge::test::write_file;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

std::string one_tensor(const std::string& name) {
  return loongforge::test::safetensors_bytes(
      "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "wxyz");
}

std::string g_warnings;
void keep_warning(loongforge::LogLevel, std::string_view message) { g_warnings += message; }

}  // namespace

TEST_CASE("sharded: the reference's four shards") {
  const std::filesystem::path folder = loongforge::test::data_dir() / "formats/sharded";
  const std::unique_ptr<TensorSource> source = open_tensor_source(folder);
  const Json index = loongforge::support::read_json((folder / kIndex).string());
  CHECK(source->tensors().size() == index.at("weight_map").as_object().size());
  uint64_t total = 0;
  for (const StoredTensor& tensor : source->tensors()) {
    CHECK(tensor.dtype == DType::kBF16);
    CHECK(std::filesystem::path(tensor.file).filename().string() ==
          index.at("weight_map").at(tensor.name).as_string());
    CHECK(source->read_f32(tensor).size() == static_cast<size_t>(tensor.elements()));
    total += tensor.bytes;
  }
  CHECK(static_cast<int64_t>(total) == index.at("metadata").at("total_size").as_int());
  CHECK(source->at("model.layers.0.self_attn.q_norm.weight").shape == std::vector<int64_t>{32});
  // Rows read apart equal the whole.
  const StoredTensor& embedding = source->at("model.embed_tokens.weight");
  const std::vector<float> whole = source->read_f32(embedding);
  std::vector<float> row(static_cast<size_t>(embedding.cols()));
  for (int64_t r : {int64_t{0}, int64_t{7}, embedding.rows() - 1}) {
    source->read_rows_f32(embedding, r, r + 1, row);
    CHECK(std::equal(row.begin(), row.end(), whole.begin() + r * embedding.cols()));
  }
}

TEST_CASE("sharded: broken folders") {
  TempDir dir;
  LF_CHECK_ERROR(open_hf_checkpoint(dir.path()), ErrorCode::kNoInput,
                 "holds neither model.safetensors nor pytorch_model.bin");
  LF_CHECK_ERROR(open_hf_checkpoint(dir / "absent"), ErrorCode::kNoInput, "absent");
  const auto refuse = [&](const char* index, ErrorCode code, const char* text) {
    write_file(dir / kIndex, index);
    LF_CHECK_ERROR(open_hf_checkpoint(dir.path()), code, text);
  };
  write_file(dir / "one.safetensors", one_tensor("a"));
  refuse("{}", ErrorCode::kBadData, "has no object weight_map");
  refuse(R"({"weight_map":{}})", ErrorCode::kBadData, "weight_map is empty");
  refuse(R"({"weight_map":{"a":"../one.safetensors"}})", ErrorCode::kBadData,
         "a: is mapped to \"../one.safetensors\"");
  refuse(R"({"weight_map":{"a":"/etc/passwd"}})", ErrorCode::kBadData, "a: is mapped to");
  refuse(R"({"weight_map":{"a":".."}})", ErrorCode::kBadData, "a: is mapped to");
  refuse(R"({"weight_map":{"a":3}})", ErrorCode::kBadData, "a: is mapped to 3");
  refuse(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})", ErrorCode::kBadData,
         "two.safetensors: does not exist, but the index maps b to it");
  refuse(R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})", ErrorCode::kBadData,
         "one.safetensors: b: the index maps");
  refuse(R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})", ErrorCode::kBadData,
         "duplicate key \"a\" in weight_map");
  const std::string cut = one_tensor("b");
  write_file(dir / "two.safetensors", cut.substr(0, cut.size() - 1));
  refuse(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})", ErrorCode::kBadData,
         "two.safetensors: b: data ends at byte");
}

TEST_CASE("sharded: a tensor outside the map is left out with a warning") {
  TempDir dir;
  write_file(dir / "one.safetensors", one_tensor("a"));
  write_file(dir / "two.safetensors", loongforge::test::safetensors_bytes(
                                          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                          "xy"));
  write_file(dir / kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  g_warnings.clear();
  loongforge::set_log_sink(keep_warning);
  const ShardedCheckpoint source(dir / kIndex);
  loongforge::set_log_sink(nullptr);
  CHECK(source.tensors().size() == 2);
  CHECK(source.at("a").bytes == 4);  // from the file that the map names
  CHECK(
      g_warnings.find("two.safetensors: 1 tensor is not in the index and left out, the first: a") !=
      std::string::npos);
}

TEST_CASE("sharded: writing in shards and reading back") {
  TempDir dir;
  // 10-byte tensors, at most 25 bytes a shard; one larger than a shard stands alone.
  std::vector<NewTensor> tensors;
  for (int i = 0; i < 5; ++i) tensors.push_back({"t" + std::to_string(i), DType::kBF16, {5}});
  tensors.push_back({"big", DType::kU8, {40}});
  tensors.push_back({"empty", DType::kU8, {0}});
  ShardedWriter writer(dir.path(), tensors, 25, {{"note", "x"}});
  CHECK(writer.shards() == 5);  // t0 t1 | t2 t3 | t4 | big | empty
  CHECK(writer.total_bytes() == 90);
  LF_CHECK_ERROR(writer.write("none", {}), ErrorCode::kFailed, "tensor none was not announced");
  for (size_t i = tensors.size(); i-- > 0;) {  // any order of tensors
    writer.write(tensors[i].name, loongforge::test::bytes_of(
                                      std::string(tensors[i].bytes(), static_cast<char>('a' + i))));
  }
  writer.finish();
  const Json index = loongforge::support::read_json((dir / kIndex).string());
  CHECK(index.at("metadata").at("total_size").as_int() == 90);
  CHECK(index.at("weight_map").at("big").as_string() == "model-00004-of-00005.safetensors");
  const auto source = open_hf_checkpoint(dir.path());
  CHECK(source->tensors().size() == tensors.size());
  CHECK(source->metadata().at("format") == "pt");
  CHECK(source->metadata().at("note") == "x");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& t = source->at(tensors[i].name);
    std::vector<uint8_t> bytes(t.bytes);
    source->read_range(t, 0, bytes);
    CHECK(bytes == std::vector<uint8_t>(tensors[i].bytes(), static_cast<uint8_t>('a' + i)));
  }
}

TEST_CASE("sharded: one shard has no index, an incomplete one leaves no file") {
  TempDir dir;
  {
    ShardedWriter writer(dir.path(), {{"a", DType::kU8, {2}}}, 100);
    writer.write("a", loongforge::test::bytes_of("xy"));
    writer.finish();
  }
  CHECK(dir.entries() == 1);
  CHECK(std::filesystem::exists(dir / "model.safetensors"));
  TempDir other;
  {
    ShardedWriter writer(other.path(), {{"a", DType::kU8, {2}}}, 100);
    writer.write("a", loongforge::test::bytes_of("x"));
    LF_CHECK_ERROR(writer.finish(), ErrorCode::kFailed, "a: 1 of its bytes were not written");
  }
  CHECK(other.entries() == 0);
}
