#include "ir/writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "ir/reader.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "tiny_model.h"

using namespace loongforge;
using support::Json;

namespace {

// Bit by bit, from the definition: an oracle that shares nothing with base/checksum.
uint32_t slow_crc32c(const uint8_t* bytes, size_t count) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

uint64_t number(const std::string& bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= uint64_t{static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)])} << (8 * i);
  return value;
}

// A second reader, written from loongir(5) alone.
struct SecondReader {
  Json json;
  std::filesystem::path folder;

  explicit SecondReader(const std::filesystem::path& path)
      : json(Json::parse(test::read_file(path / "loongir_model.json"), "test")), folder(path) {}

  const Json& tensor(const std::string& name) const {
    for (const Json& each : json.at("tensors").as_array()) {
      if (each.at("name").as_string() == name) return each;
    }
    FAIL("no tensor " << name);
    throw 0;
  }
  std::string bytes(const Json& entry) const {
    const std::string file = test::read_file(folder / entry.at("file").as_string());
    return file.substr(static_cast<size_t>(entry.at("offset").as_int()),
                       static_cast<size_t>(entry.at("bytes").as_int()));
  }
};

void check_layout(const std::filesystem::path& folder, uint64_t page) {
  const SecondReader reader(folder);
  std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> ranges;
  for (const Json& entry : reader.json.at("tensors").as_array()) {
    if (entry.contains("alias_of")) continue;
    const uint64_t offset = static_cast<uint64_t>(entry.at("offset").as_int());
    CHECK(offset % 128 == 0);
    CHECK(offset >= page);
    ranges[entry.at("file").as_string()].emplace_back(
        offset, offset + static_cast<uint64_t>(entry.at("bytes").as_int()));
  }
  for (auto& [name, list] : ranges) {
    const std::string file = test::read_file(folder / name);
    CHECK(file.substr(0, 8) == "LOONGIR\n");
    CHECK(number(file, 8, 4) == 1);
    CHECK(number(file, 12, 4) == 1);
    CHECK(number(file, 16, 8) == page);
    std::sort(list.begin(), list.end());
    CHECK(list.front().first == page);
    // All that no tensor covers is zero.
    uint64_t at = 24;
    for (const auto& [begin, end] : list) {
      CHECK(begin >= at);
      for (uint64_t i = at; i < begin; ++i) REQUIRE(file[i] == 0);
      at = end;
    }
    for (uint64_t i = at; i < file.size(); ++i) REQUIRE(file[i] == 0);
    CHECK(file.size() == (at + 127) / 128 * 128);
  }
}

}  // namespace

TEST_CASE("a written folder is what loongir(5) says") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m");
  check_layout(dir / "m", 4096);
  const SecondReader reader(dir / "m");
  CHECK(reader.json.at("format").as_string() == "LoongIR");
  CHECK(reader.json.at("format_version").as_string() == "1.1");

  const Json& embed = reader.tensor("embed.weight");
  CHECK(embed.at("bytes").as_int() == 300 * 96);  // 80 bytes a row, padded to 96
  const std::string rows = reader.bytes(embed);
  const std::string sums = reader.bytes(reader.tensor(embed.at("crc").as_string()));
  for (int64_t r = 0; r < 300; ++r) {
    for (int64_t c = 0; c < 40; ++c) {
      REQUIRE(number(rows, static_cast<size_t>(r * 96 + c * 2), 2) == test::tiny_bf16(r, c));
    }
    for (size_t pad = 80; pad < 96; ++pad) REQUIRE(rows[static_cast<size_t>(r) * 96 + pad] == 0);
  }
  const auto* raw = reinterpret_cast<const uint8_t*>(rows.data());
  CHECK(number(sums, 0, 4) == slow_crc32c(raw, 128 * 96));
  CHECK(number(sums, 4, 4) == slow_crc32c(raw + 128 * 96, 128 * 96));
  CHECK(number(sums, 8, 4) == slow_crc32c(raw + 256 * 96, 44 * 96));

  const Json& proj = reader.tensor("proj.weight");
  CHECK(proj.at("dtype").as_string() == "E4M3LA");
  CHECK(proj.at("scale_block").dump() == "[128,128]");
  const std::string codes = reader.bytes(proj);
  for (int64_t r = 0; r < 200; ++r) {
    for (int64_t c = 0; c < 40; ++c)
      REQUIRE(number(codes, static_cast<size_t>(r * 64 + c), 1) == test::tiny_code(r, c));
  }
  const Json& scale = reader.tensor(proj.at("scale").as_string());
  CHECK(scale.at("shape").dump() == "[2,1]");
  const std::string scales = reader.bytes(scale);
  CHECK(scales.size() == 64);  // two rows of one F32, padded to 32
  CHECK(number(scales, 0, 4) == 0x3E800000);
  CHECK(number(scales, 32, 4) == 0x40000000);
  for (const char* companion :
       {"embed.weight.crc", "norm.weight.crc", "proj.weight.crc", "proj.weight.scale"}) {
    const Json& entry = reader.tensor(companion);
    const std::string bytes = reader.bytes(entry);
    CHECK(static_cast<uint32_t>(entry.at("crc32c").as_int()) ==
          slow_crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  }
  const Json& head = reader.tensor("head.weight");
  CHECK(head.at("alias_of").as_string() == "embed.weight");
  CHECK(head.at("source_had_both").as_bool());
}

TEST_CASE("data of loongarch64 begins at its page") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m", 16384, 5'000'000'000, "loongarch64");
  check_layout(dir / "m", 16384);
  const ir::Reader reader(dir / "m");
  CHECK(reader.model().device == "loongarch64");
}

TEST_CASE("files end before the limit and a larger tensor stands alone") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "m", 4096,
                         20'000);  // the embedding is larger, the others fit together
  check_layout(dir / "m", 4096);
  const ir::Reader reader(dir / "m");
  CHECK(reader.model().find_tensor("embed.weight")->file == "weights-00001-of-00002.lir");
  CHECK(reader.model().find_tensor("norm.weight")->file == "weights-00002-of-00002.lir");
  CHECK(reader.model().find_tensor("proj.weight.scale")->file == "weights-00002-of-00002.lir");
}

TEST_CASE("an imported FP8 weight keeps its scales and what it carries") {
  const test::TempDir dir;
  ir::TensorEntry entry = test::tiny_entry("q", tensor::DType::kE4M3LA, {3, 40});
  entry.block_rows = 1;
  entry.block_cols = 40;
  entry.scale_dtype = tensor::DType::kBF16;
  entry.source_scale = {"q_scale", {3}};
  const ir::TensorEntry carried[] = {test::tiny_entry("q.input_scale", tensor::DType::kF32, {}),
                                     test::tiny_entry("q.zero", tensor::DType::kF8E4M3, {3, 1})};
  const uint8_t scales[] = {0x00, 0x3F, 0x40, 0x40, 0x80, 0x3E}, zero[3] = {1, 2, 3};
  const float input = 0.5f;
  const std::vector<uint8_t> codes(120, 0x11);
  const std::vector<uint16_t> rows(4);
  ir::Writer writer(dir / "m", false, 4096);
  writer.begin_tensor(entry, carried);
  writer.write_rows(codes.data(), 3);
  LF_CHECK_ERROR(writer.set_scales(std::vector<float>(3)), ErrorCode::kFailed, "another type");
  LF_CHECK_ERROR(writer.set_scale_bytes({scales, 4}), ErrorCode::kFailed, "do not fit");
  writer.set_scale_bytes(scales);
  LF_CHECK_ERROR(writer.set_carried("q.zero", {zero, 2}), ErrorCode::kFailed, "q.zero");
  LF_CHECK_ERROR(writer.set_carried("q.one", zero), ErrorCode::kFailed, "q.one");
  writer.set_carried("q.zero", zero);
  LF_CHECK_ERROR(writer.finish_tensor(), ErrorCode::kFailed, "without q.input_scale");
  writer.set_carried("q.input_scale", {reinterpret_cast<const uint8_t*>(&input), 4});
  writer.finish_tensor();
  writer.begin_tensor(test::tiny_entry("embed.weight", tensor::DType::kBF16, {2, 2}));
  writer.write_rows(rows.data(), 2);
  writer.finish_tensor();
  ir::Model model = test::tiny_description();
  model.graph.nodes.resize(1);
  writer.finish(std::move(model));

  check_layout(dir / "m", 4096);
  const SecondReader second(dir / "m");
  const Json& q = second.tensor("q");
  CHECK(q.at("scale_block").dump() == "[1,40]");
  CHECK(q.at("source_scale").dump() == R"({"name":"q_scale","shape":[3]})");
  CHECK(q.at("companions").dump() == R"(["q.input_scale","q.zero"])");
  const Json& scale = second.tensor(q.at("scale").as_string());
  CHECK(scale.at("dtype").as_string() == "BF16");
  const std::string bytes = second.bytes(scale);
  for (size_t i = 0; i < 3; ++i)
    CHECK(number(bytes, 32 * i, 2) == number({reinterpret_cast<const char*>(scales), 6}, 2 * i, 2));
  CHECK(number(second.bytes(second.tensor("q.input_scale")), 0, 4) == 0x3F000000);
  CHECK(number(second.bytes(second.tensor("q.zero")), 64, 1) == 3);
  const ir::Reader reader(dir / "m");
  CHECK(reader.read_f32("q.scale") == std::vector<float>{0.5f, 3.0f, 0.25f});
}

TEST_CASE("the same input gives the same bytes") {
  const test::TempDir dir;
  test::write_tiny_model(dir / "a");
  test::write_tiny_model(dir / "b");
  for (const char* name : {"loongir_model.json", "weights-00001-of-00001.lir"}) {
    CHECK(test::read_file(dir / "a" / name) == test::read_file(dir / "b" / name));
  }
}

TEST_CASE("a writer that does not finish leaves nothing") {
  const test::TempDir dir;
  {
    ir::Writer writer(dir / "m", false, 4096);
    writer.begin_tensor(test::tiny_entry("x", tensor::DType::kF32, {2, 2}));
    const float rows[4] = {};
    writer.write_rows(rows, 2);
    writer.finish_tensor();
  }
  CHECK(dir.entries() == 0);
}

TEST_CASE("a broken graph is refused before the folder appears") {
  const test::TempDir dir;
  {
    ir::Writer writer(dir / "m", false, 4096);
    writer.begin_tensor(test::tiny_entry("embed.weight", tensor::DType::kF32, {2, 2}));
    const float rows[4] = {};
    writer.write_rows(rows, 2);
    writer.finish_tensor();
    LF_CHECK_ERROR(writer.finish(test::tiny_description()), ErrorCode::kBadData, "norm.weight");
  }
  CHECK(dir.entries() == 0);
}

TEST_CASE("misuse of the writer is an error") {
  const test::TempDir dir;
  ir::Writer writer(dir / "m", false, 4096);
  const float rows[16] = {};
  writer.begin_tensor(test::tiny_entry("x", tensor::DType::kF32, {2, 2}));
  LF_CHECK_ERROR(writer.write_rows(rows, 3), ErrorCode::kFailed, "more rows");
  LF_CHECK_ERROR(writer.finish_tensor(), ErrorCode::kFailed, "before all its rows");
  LF_CHECK_ERROR(writer.begin_tensor(test::tiny_entry("y", tensor::DType::kF32, {2})),
                 ErrorCode::kFailed, "not finished");
  LF_CHECK_ERROR(writer.set_scales(std::vector<float>{1.0f}), ErrorCode::kFailed, "do not fit");
  LF_CHECK_ERROR(writer.add_alias("z", "w", false), ErrorCode::kFailed, "was not written");
}
