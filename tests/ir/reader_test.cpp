#include "ir/reader.h"

#include <doctest/doctest.h>

#include <functional>

#include "ir/model_json.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "tiny_model.h"

using namespace loongforge;
using support::Json;

namespace {

constexpr const char* kWeights = "weights-00001-of-00001.lir";

// Writes the tiny model, lets `edit` change its description, and expects the reader to refuse it
// saying `text`.
void refuse(const std::function<void(Json&)>& edit, const char* text) {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  Json json = Json::parse(test::read_file(dir / "m" / "loongir_model.json"), "test");
  edit(json);
  test::write_file(dir / "m" / "loongir_model.json", json.dump(1));
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, text);
}

Json& item(Json& json, const char* list, const std::string& name) {
  Json& items =
      std::string(list) == "nodes" ? *json.find("graph")->find("nodes") : *json.find(list);
  for (Json& each : items.as_array()) {
    if (each.at("name").as_string() == name) return each;
  }
  FAIL("no " << name);
  throw 0;
}
Json& row(Json& json, const char* name) { return item(json, "tensors", name); }
Json& node(Json& json, const char* name) { return item(json, "nodes", name); }

void drop_tensor(Json& json, const std::string& name) {
  Json::Array& tensors = json.find("tensors")->as_array();
  std::erase_if(tensors, [&name](const Json& each) { return each.at("name").as_string() == name; });
}

}  // namespace

TEST_CASE("what was written is read back") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  const ir::Reader reader(dir / "m");
  const ir::Model& model = reader.model();
  CHECK(model.family == "llama");
  CHECK(model.model_name == "tiny");
  CHECK(model.config.get_double("rms_norm_eps", 0) == 1e-05);
  CHECK(model.graph.nodes.size() == 4);
  CHECK(model.graph.nodes[1].block == 0);
  CHECK(model.graph.nodes[3].block == -1);
  CHECK(model.graph.nodes[2].attrs.get_int("out", 0) == 200);

  const ir::TensorEntry& embed = model.stored_tensor("head.weight");
  CHECK(embed.name == "embed.weight");
  CHECK(embed.row_stride() == 96);
  std::vector<uint8_t> rows(172 * 96);
  reader.read_rows(*model.find_tensor("head.weight"), 128, 300, rows);
  for (int64_t r = 128; r < 300; ++r) {
    for (int64_t c = 0; c < 40; ++c) {
      const size_t at = static_cast<size_t>((r - 128) * 96 + 2 * c);
      REQUIRE((rows[at] | rows[at + 1] << 8) == test::tiny_bf16(r, c));
    }
  }
  const std::vector<float> norm = reader.read_f32("norm.weight");
  REQUIRE(norm.size() == 40);
  for (int64_t c = 0; c < 40; ++c) CHECK(norm[static_cast<size_t>(c)] == test::tiny_norm(c));
  CHECK(reader.read_f32("embed.weight")[41] == 1.0625f);  // row 1, column 1: 0x3F88
  std::vector<int8_t> exps;
  CHECK(reader.read_scale_exponents(*model.find_tensor("proj.weight"), &exps));
  CHECK(exps == std::vector<int8_t>{-2, 1});
}

TEST_CASE("rows are asked for in groups of 128") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  const ir::Reader reader(dir / "m");
  std::vector<uint8_t> rows(96 * 100);
  LF_CHECK_ERROR(reader.read_rows(*reader.model().find_tensor("embed.weight"), 0, 100, rows),
                 ErrorCode::kFailed, "cannot be read");
  LF_CHECK_ERROR(reader.read_rows(*reader.model().find_tensor("embed.weight"), 0, 128, rows),
                 ErrorCode::kFailed, "cannot be read");
}

TEST_CASE("an absent or foreign folder") {
  const test::TempDir dir;
  LF_CHECK_ERROR(ir::Reader(dir / "none"), ErrorCode::kNoInput, "no LoongIR folder");
  LF_CHECK_ERROR(ir::Reader(dir.path()), ErrorCode::kNoInput, "no LoongIR folder");
}

TEST_CASE("a changed byte is found when its rows are read") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  std::string file = test::read_file(dir / "m" / kWeights);
  uint64_t offset, crc_offset;
  {
    const ir::Reader reader(dir / "m");
    offset = reader.model().find_tensor("embed.weight")->offset;
    crc_offset = reader.model().find_tensor("norm.weight.crc")->offset;
  }
  file[offset + 200 * 96 + 90] ^= 1;  // even in the padding
  file[crc_offset] ^= 1;
  test::write_file(dir / "m" / kWeights, file);
  const ir::Reader reader(dir / "m");
  std::vector<uint8_t> rows(128 * 96);
  const ir::TensorEntry& embed = *reader.model().find_tensor("embed.weight");
  CHECK_NOTHROW(reader.read_rows(embed, 0, 128, rows));
  LF_CHECK_ERROR(reader.read_rows(embed, 128, 256, rows), ErrorCode::kBadData, "rows 128 to 255");
  LF_CHECK_ERROR(reader.read_f32("norm.weight"), ErrorCode::kBadData, "norm.weight.crc");
}

TEST_CASE("weight files that are cut, long, foreign or gone") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  const std::string file = test::read_file(dir / "m" / kWeights);
  test::write_file(dir / "m" / kWeights, file.substr(0, file.size() - 128));
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, "the tensor table needs");
  test::write_file(dir / "m" / kWeights, file + std::string(128, '\0'));
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, "the tensor table needs");
  std::string other = file;
  other[0] = 'X';
  test::write_file(dir / "m" / kWeights, other);
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, "no LoongIR weight file");
  other = file;
  other[17] = 0x40;
  test::write_file(dir / "m" / kWeights, other);
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, "begin its data");
  std::filesystem::remove(dir / "m" / kWeights);
  LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData,
                 "does not exist, but the tensor table names it");
}

TEST_CASE("versions") {
  refuse([](Json& j) { j.set("format_version", "2.0"); }, "newer loongforge");
  refuse([](Json& j) { j.set("format_version", "0.9"); }, "format_version 0.9");
  refuse([](Json& j) { j.set("format_version", "1"); }, "major.minor");
  refuse([](Json& j) { j.set("format_version", "1.0x"); }, "major.minor");
  refuse([](Json& j) { j.set("format", "other"); }, "is not of format");
  refuse([](Json& j) { j.set("colour", 1); }, "unknown key \"colour\"");

  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  Json json = Json::parse(test::read_file(dir / "m" / "loongir_model.json"), "test");
  json.set("format_version", "1.7");
  json.set("colour", 1);
  row(json, "norm.weight").set("shade", "dark");
  node(json, "norm").set("shade", "dark");
  test::write_file(dir / "m" / "loongir_model.json", json.dump());
  CHECK(ir::Reader(dir / "m").model().version_minor == 7);
}

TEST_CASE("keys that are absent or of a wrong type") {
  refuse([](Json& j) { j.erase("family"); }, "lacks the key \"family\"");
  refuse([](Json& j) { j.set("config", "x"); }, "\"config\" as string, not an object");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", -128); }, "out of range");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", 1.5); }, "not an integer");
  refuse([](Json& j) { row(j, "norm.weight").set("shape", Json::parse("[0]", "t")); },
         "out of range");
  refuse([](Json& j) { row(j, "norm.weight").set("dtype", "F31"); }, "unknown dtype");
  refuse([](Json& j) { j.set("device", "sparc"); }, "sparc");
  refuse([](Json& j) { j.set("quantize", "int3"); }, "int3");
}

TEST_CASE("offsets, sizes and overlaps") {
  refuse(
      [](Json& j) {
        row(j, "norm.weight").set("offset", row(j, "norm.weight").at("offset").as_int() + 64);
      },
      "multiple of 128");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", 0); }, "inside the file's header");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", row(j, "embed.weight").at("offset")); },
         "overlaps");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", int64_t{1} << 40); },
         "the tensor table needs");
  refuse([](Json& j) { row(j, "norm.weight").set("offset", int64_t{0x7FFFFFFFFFFFFF80}); },
         "not possible");
  refuse([](Json& j) { row(j, "norm.weight").set("bytes", 128); }, "its shape and dtype need 160");
  refuse(
      [](Json& j) {
        row(j, "embed.weight").set("shape", Json::parse("[4611686018427387904, 4]", "t"));
      },
      "not possible");
  refuse([](Json& j) { row(j, "norm.weight").set("file", "../x.lir"); }, "no plain file name");
  refuse([](Json& j) { row(j, "norm.weight").set("file", ".x"); }, "no plain file name");
  refuse([](Json& j) { row(j, "norm.weight").set("name", "embed.weight"); }, "twice");
}

TEST_CASE("companions") {
  refuse([](Json& j) { drop_tensor(j, "embed.weight.crc"); }, "crc companion \"embed.weight.crc\"");
  refuse([](Json& j) { drop_tensor(j, "proj.weight.scale"); },
         "scale companion \"proj.weight.scale\"");
  refuse(
      [](Json& j) {
        row(j, "embed.weight").erase("crc");
        row(j, "embed.weight").set("crc32c", 1);
        drop_tensor(j, "embed.weight.crc");
      },
      "lacks its crc companion");
  refuse([](Json& j) { row(j, "embed.weight").set("crc", "norm.weight"); }, "is no companion");
  refuse([](Json& j) { row(j, "embed.weight").set("crc", "norm.weight.crc"); },
         "not one U32 for each 128 rows");
  refuse([](Json& j) { row(j, "norm.weight").set("crc", "embed.weight.crc"); },
         "companion of two tensors");
  refuse([](Json& j) { row(j, "proj.weight").set("scale_block", Json::parse("[64, 128]", "t")); },
         "does not fit the scale blocks");
  refuse([](Json& j) { row(j, "proj.weight").set("scale_block", Json::parse("[0, 128]", "t")); },
         "out of range");
  refuse([](Json& j) { row(j, "proj.weight").erase("scale"); }, "lacks its scale companion");
  refuse([](Json& j) { row(j, "norm.weight").set("scale", "proj.weight.scale"); },
         "is neither FP8 nor NF4");
}

TEST_CASE("what an imported FP8 weight names must be there and fit") {
  const auto with = [](const char* key, const char* value, const char* text,
                       const char* tensor = "proj.weight") {
    refuse([&](Json& j) { row(j, tensor).set(key, Json::parse(value, "t")); }, text);
  };
  with("companions", R"(["gone"])", "carried companion \"gone\"");
  with("companions", R"(["norm.weight"])", "is no companion");
  with("companions", R"(["proj.weight.scale"])", "companion of two tensors");
  with("companions", R"([3])", "array of strings");
  with("companions", R"(["norm.weight.crc"])", "not FP8", "norm.weight");
  with("source_scale", R"({"name": "s", "shape": [3]})", "source_scale of another size");
  with("source_scale", R"({"name": "s", "shape": [4611686018427387904, 4611686018427387904, 2]})",
       "source_scale of another size");
  with("source_scale", R"({"name": "s", "shape": [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]})",
       "source_scale of another size");
  with("source_scale", R"({"name": "", "shape": [2]})", "empty name");
  with("source_scale", R"({"name": "s"})", "lacks the key \"shape\"");
  with("source_scale", R"({"name": "s", "shape": [2]})", "is not FP8", "norm.weight");
}

TEST_CASE("aliases") {
  refuse([](Json& j) { row(j, "head.weight").set("alias_of", "nothing"); },
         "which the table does not hold");
  refuse([](Json& j) { row(j, "head.weight").set("alias_of", "head.weight"); },
         "is an alias itself");
  refuse([](Json& j) { row(j, "head.weight").set("alias_of", "proj.weight"); },
         "another dtype or shape");
  refuse(
      [](Json& j) {
        Json second = row(j, "head.weight");
        second.set("name", "third.weight");
        second.set("alias_of", "head.weight");
        j.find("tensors")->push_back(second);
        row(j, "head.weight").set("alias_of", "third.weight");
      },
      "is an alias itself");
}

TEST_CASE("the graph") {
  refuse([](Json& j) { node(j, "norm").set("op", "conv9d"); }, "unknown op \"conv9d\"");
  refuse([](Json& j) { node(j, "norm").set("inputs", Json::parse(R"(["proj"])", "t")); },
         "no earlier node gives");
  refuse([](Json& j) { node(j, "norm").set("inputs", Json::parse(R"(["norm"])", "t")); },
         "no earlier node gives");
  refuse([](Json& j) { node(j, "norm").set("inputs", Json::parse(R"(["token_ids"])", "t")); },
         "cannot read token_ids");
  refuse([](Json& j) { node(j, "embed_tokens").set("inputs", Json::parse(R"(["x"])", "t")); },
         "must read token_ids");
  refuse([](Json& j) { node(j, "norm").set("inputs", Json::array()); }, "0 inputs, not 1");
  refuse([](Json& j) { node(j, "norm").set("name", "proj"); }, "twice");
  refuse([](Json& j) { node(j, "norm").erase("attrs"); }, "lacks the attribute \"eps\"");
  refuse([](Json& j) { node(j, "norm").find("attrs")->set("eps", "small"); }, "of a wrong type");
  refuse([](Json& j) { node(j, "norm").find("attrs")->set("epz", 1); },
         "takes no attribute \"epz\"");
  refuse([](Json& j) { node(j, "norm").erase("params"); }, "lacks the parameter \"weight\"");
  refuse([](Json& j) { node(j, "norm").find("params")->set("gain", "norm.weight"); },
         "takes no parameter \"gain\"");
  refuse([](Json& j) { node(j, "norm").find("params")->set("weight", "none"); },
         "which the table does not hold");
  refuse([](Json& j) { node(j, "norm").find("params")->set("weight", "proj.weight"); },
         "of rank 1");
  refuse([](Json& j) { node(j, "proj").find("attrs")->set("out", 201); }, "not [201, 40]");
  refuse([](Json& j) { node(j, "proj").set("shard", "by_magic"); }, "by_magic");
  refuse([](Json& j) { j.find("graph")->set("nodes", Json::array()); }, "no nodes");
}

// q: NF4 [130, 71], the codes and absmax counted through.
void write_nf4(const std::filesystem::path& folder) {
  ir::Writer writer(folder, false, 4096);
  ir::TensorEntry entry = test::tiny_entry("q", tensor::DType::kNf4, {130, 71});
  entry.block_rows = 1;
  entry.block_cols = 64;
  std::vector<uint8_t> codes(130 * 36);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 7);
  std::vector<float> absmax(260);
  for (size_t i = 0; i < absmax.size(); ++i) absmax[i] = static_cast<float>(i) / 8;
  writer.begin_tensor(entry);
  writer.write_rows(codes.data(), 130);
  writer.set_scales(absmax);
  writer.finish_tensor();
  const std::vector<uint16_t> rows(4);
  writer.begin_tensor(test::tiny_entry("embed.weight", tensor::DType::kBF16, {2, 2}));
  writer.write_rows(rows.data(), 2);
  writer.finish_tensor();
  ir::Model model = test::tiny_description();
  model.quantize = "nf4";
  model.graph.nodes.resize(1);
  writer.finish(std::move(model));
}

TEST_CASE("NF4: codes two a byte, absmax beside them") {
  const test::TempDir dir;
  write_nf4(dir / "m");
  const ir::Reader reader(dir / "m");
  const ir::TensorEntry& q = *reader.model().find_tensor("q");
  CHECK(q.dtype == tensor::DType::kNf4);
  CHECK(q.scale == "q.absmax");
  CHECK(q.row_bytes() == 36);
  CHECK(q.row_stride() == 64);
  CHECK(reader.model().find_tensor("q.absmax")->shape == std::vector<int64_t>{130, 2});
  std::vector<uint8_t> rows(130 * 64);
  reader.read_rows(q, 0, 130, rows);
  size_t wrong = 0;
  for (size_t r = 0; r < 130; ++r)
    for (size_t b = 0; b < 64; ++b)
      wrong += rows[r * 64 + b] != (b < 36 ? static_cast<uint8_t>((r * 36 + b) * 7) : 0);
  CHECK(wrong == 0);
  const std::vector<float> absmax = reader.read_f32("q.absmax");
  REQUIRE(absmax.size() == 260);
  CHECK(absmax[259] == 259.0f / 8);
  LF_CHECK_ERROR(reader.read_f32("q"), ErrorCode::kBadData, "NF4");
}

TEST_CASE("NF4: a table that does not fit is refused") {
  const auto refuse_nf4 = [](const std::function<void(Json&)>& edit, const char* text) {
    const test::TempDir dir;
    write_nf4(dir / "m");
    Json json = Json::parse(test::read_file(dir / "m" / "loongir_model.json"), "test");
    edit(json);
    test::write_file(dir / "m" / "loongir_model.json", json.dump(1));
    LF_CHECK_ERROR(ir::Reader(dir / "m"), ErrorCode::kBadData, text);
  };
  const auto with = [&](const char* tensor, const char* key, const char* value, const char* text) {
    refuse_nf4([&](Json& j) { row(j, tensor).set(key, Json::parse(value, "t")); }, text);
  };
  with("q", "scale_block", "[1, 32]", "other than [1, 64]");
  with("q", "scale_block", "[2, 64]", "other than [1, 64]");
  with("q", "shape", "[130, 129]", "its shape and dtype need");
  with("q", "shape", "[130, 8, 9]", "is NF4 and no matrix");
  with("q.absmax", "shape", "[130, 1]", "not one F32 for each 64");
  with("q.absmax", "dtype", "\"U32\"", "not one F32 for each 64");
  with("q", "companions", R"(["embed.weight.crc"])", "is not FP8");
  refuse_nf4([](Json& j) { drop_tensor(j, "q.absmax"); }, "absmax companion \"q.absmax\"");
  refuse_nf4([](Json& j) { row(j, "q").erase("scale"); }, "lacks its absmax");
  refuse_nf4([](Json& j) { row(j, "q").set("shape", Json::parse("[9360]", "t")); }, "shape");
}

TEST_CASE("scales that are no powers of two are told from those that are") {
  const test::TempDir dir;
  const auto exponents = [&dir](const char* name, float scale) {
    ir::Writer writer(dir / name, false, 4096);
    const uint8_t codes[4] = {};
    const uint16_t rows[4] = {};
    writer.begin_tensor(test::tiny_entry("q", tensor::DType::kE4M3LA, {2, 2}, 128));
    writer.write_rows(codes, 2);
    writer.set_scales(std::vector<float>{scale});
    writer.finish_tensor();
    writer.begin_tensor(test::tiny_entry("embed.weight", tensor::DType::kBF16, {2, 2}));
    writer.write_rows(rows, 2);
    writer.finish_tensor();
    ir::Model model = test::tiny_description();
    model.graph.nodes.resize(1);
    writer.finish(model);
    const ir::Reader reader(dir / name);
    std::vector<int8_t> exps;
    return reader.read_scale_exponents(*reader.model().find_tensor("q"), &exps);
  };
  CHECK(exponents("a", 0x1p-41f));
  CHECK(exponents("b", 0x1p127f));
  CHECK_FALSE(exponents("c", 0x1p-42f));
  CHECK_FALSE(exponents("d", 3.0f));
  CHECK_FALSE(exponents("e", -1.0f));
  CHECK_FALSE(exponents("f", 0.0f));
}
