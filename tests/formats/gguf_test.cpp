#include "formats/gguf.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "formats/safetensors.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/json.h"
#include "support/temp_dir.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::test::append_number;
using loongforge::test::TempDir;

namespace {

constexpr uint64_t kHuge = uint64_t{1} << 60;

// Builds a GGUF file piece by piece.
struct Builder {
  std::string bytes;

  explicit Builder(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    bytes = "GGUF";
    append_number(bytes, version);
    append_number(bytes, tensors);
    append_number(bytes, entries);
  }
  template <class T>
  Builder& number(T value) {
    append_number(bytes, value);
    return *this;
  }
  Builder& text(std::string_view value) {
    append_number(bytes, uint64_t{value.size()});
    bytes += value;
    return *this;
  }
  Builder& entry(std::string_view key, uint32_t type) { return text(key).number(type); }
  Builder& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                  uint64_t offset) {
    text(name).number(static_cast<uint32_t>(dims.size()));
    for (uint64_t d : dims) number(d);
    return number(type).number(offset);
  }
  Builder& data(size_t n, size_t alignment = 32) {
    while (bytes.size() % alignment != 0) bytes += '\0';
    bytes.append(n, '\0');
    return *this;
  }
};

GgufFile open(const TempDir& dir, const Builder& builder) {
  loongforge::test::write_file(dir / "m.gguf", builder.bytes);
  return GgufFile(dir / "m.gguf");
}

void refuse(const Builder& builder, const char* text) {
  TempDir dir;
  CAPTURE(std::string(text));
  LF_CHECK_ERROR(open(dir, builder), ErrorCode::kBadData, text);
  LF_CHECK_ERROR(open(dir, builder), ErrorCode::kBadData, "m.gguf");
}

// Every tensor of the file, which is called by its type, is exactly what the gguf package reads.
void check_types(const GgufFile& file, const SafetensorsFile& expected) {
  for (const StoredTensor& tensor : file.tensors()) {
    CAPTURE(tensor.name);
    CHECK(tensor.type == tensor.name);
    const std::vector<float> values = file.read_f32(tensor);
    const std::vector<float> wanted = expected.read_f32(expected.at(tensor.name));
    CHECK(tensor.shape == expected.at(tensor.name).shape);
    CHECK(values == wanted);
    std::vector<float> row(512);
    file.read_rows_f32(tensor, 1, 2, row);
    CHECK(std::equal(row.begin(), row.end(), wanted.begin() + 512));
  }
}

}  // namespace

TEST_CASE("gguf: one tensor of every type against the gguf package's values") {
  const std::filesystem::path folder = loongforge::test::data_dir() / "formats/gguf";
  const GgufFile file(folder / "types.gguf");
  const SafetensorsFile expected(folder / "types.safetensors");
  CHECK(file.version() == 3);
  CHECK(file.require_string("general.architecture") == "llama");
  CHECK(file.require_int("llama.context_length") == 128);
  CHECK(*file.get_ints("numbers") == std::vector<int64_t>{1, 2, 3});
  check_types(file, expected);
  CHECK(file.tensors().size() == 15);
  const GgufFile more(folder / "more_types.gguf");
  check_types(more, SafetensorsFile(folder / "more_types.safetensors"));
  CHECK(more.tensors().size() == 3);
}

TEST_CASE("gguf: what cannot be read names its type") {
  TempDir dir;
  Builder b(3, 0);
  b.tensor("w", {256}, 16, 0).tensor("i", {4}, 26, 96).tensor("n", {64}, 40, 128).data(0);
  b.bytes.append(66 + 30 + 32 + 36, '\0');
  const GgufFile file = open(dir, b);
  LF_CHECK_ERROR(file.read_f32(file.at("w")), ErrorCode::kBadData,
                 "m.gguf: w: tensors of type IQ2_XXS cannot be read");
  LF_CHECK_ERROR(file.read_f32(file.at("i")), ErrorCode::kBadData,
                 "m.gguf: i: tensors of type I32 cannot be read");
  LF_CHECK_ERROR(file.read_f32(file.at("n")), ErrorCode::kBadData, "of type NVFP4 cannot be read");
}

TEST_CASE("gguf: the block formats by hand") {
  TempDir dir;
  Builder b(3, 0);
  b.tensor("q4_0", {32}, 2, 0).tensor("q4_1", {32}, 3, 32).tensor("q8_0", {32}, 8, 64).data(0);
  b.number(uint16_t{0x3800}).number(uint8_t{0xf0});  // d = 0.5; elements 0 and 16 are 0 and 15
  b.bytes.append(15, '\x88');
  b.data(0);
  b.number(uint16_t{0x3800}).number(uint16_t{0xbc00}).number(uint8_t{0xf0});  // d = 0.5, m = -1
  b.bytes.append(15, '\x02');
  b.data(0);
  b.number(uint16_t{0x0001}).number(int8_t{-128});  // the smallest subnormal scale
  b.bytes.append(31, '\x01');
  const GgufFile file = open(dir, b);
  const std::vector<float> q4_0 = file.read_f32(file.at("q4_0"));
  CHECK(q4_0[0] == -4.0f);
  CHECK(q4_0[16] == 3.5f);
  CHECK(q4_0[1] == 0.0f);
  const std::vector<float> q4_1 = file.read_f32(file.at("q4_1"));
  CHECK(q4_1[0] == -1.0f);
  CHECK(q4_1[16] == 6.5f);
  CHECK(q4_1[1] == 0.0f);
  CHECK(q4_1[17] == -1.0f);
  const std::vector<float> q8_0 = file.read_f32(file.at("q8_0"));
  CHECK(q8_0[0] == -0x1p-17f);
  CHECK(q8_0[31] == 0x1p-24f);
}

TEST_CASE("gguf: metadata of every type, version 2, other alignment") {
  TempDir dir;
  Builder b(1, 16, 2);
  b.entry("u8", 0)
      .number(uint8_t{255})
      .entry("i8", 1)
      .number(int8_t{-1})
      .entry("u16", 2)
      .number(uint16_t{65535});
  b.entry("i16", 3)
      .number(int16_t{-2})
      .entry("u32", 4)
      .number(uint32_t{0xffffffff})
      .entry("i32", 5)
      .number(int32_t{-3});
  b.entry("f32", 6)
      .number(0.5f)
      .entry("bool", 7)
      .number(uint8_t{1})
      .entry("string", 8)
      .text("text");
  b.entry("u64", 10)
      .number(~uint64_t{0})
      .entry("i64", 11)
      .number(int64_t{-4})
      .entry("f64", 12)
      .number(0.1);
  b.entry("strings", 9).number(uint32_t{8}).number(uint64_t{2}).text("a").text("");
  b.entry("bools", 9).number(uint32_t{7}).number(uint64_t{2}).number(uint8_t{0}).number(uint8_t{1});
  b.entry("nested", 9)
      .number(uint32_t{9})
      .number(uint64_t{1})
      .number(uint32_t{0})
      .number(uint64_t{2})
      .number(uint8_t{7})
      .number(uint8_t{8});
  b.entry("general.alignment", 4).number(uint32_t{64});
  b.tensor("w", {4, 2}, 0, 64).data(64 + 32, 64);
  const GgufFile file = open(dir, b);
  CHECK(file.version() == 2);
  CHECK(file.alignment() == 64);
  CHECK(file.entries().size() == 16);
  CHECK(file.get_int("u8") == 255);
  CHECK(file.get_int("i8") == -1);
  CHECK(file.get_int("u16") == 65535);
  CHECK(file.get_int("i16") == -2);
  CHECK(file.get_int("u32") == 0xffffffff);
  CHECK(file.get_int("i32") == -3);
  CHECK(file.get_double("f32") == 0.5);
  CHECK(file.get_double("i32") == -3.0);
  CHECK(file.get_bool("bool") == true);
  CHECK(*file.get_string("string") == "text");
  CHECK(std::get<uint64_t>(file.find_meta("u64")->value) == ~uint64_t{0});
  CHECK(file.get_int("i64") == -4);
  CHECK(file.get_double("f64") == 0.1);
  CHECK(*file.get_strings("strings") == std::vector<std::string>{"a", ""});
  CHECK(std::get<std::vector<bool>>(file.find_meta("bools")->value) ==
        std::vector<bool>{false, true});
  const auto& nested = std::get<GgufValue::Nested>(file.find_meta("nested")->value);
  CHECK(std::get<std::vector<int64_t>>(nested.at(0).value) == std::vector<int64_t>{7, 8});
  CHECK_FALSE(file.get_int("none").has_value());
  LF_CHECK_ERROR(file.require_int("none"), ErrorCode::kBadData,
                 "m.gguf: lacks the metadata key none");
  LF_CHECK_ERROR(file.get_int("string"), ErrorCode::kBadData,
                 "m.gguf: string: is string, not integer");
  LF_CHECK_ERROR(file.get_strings("bools"), ErrorCode::kBadData,
                 "m.gguf: bools: is array of bools, not array of strings");
  LF_CHECK_ERROR(file.get_int("u64"), ErrorCode::kBadData, "u64: is");
  CHECK(file.at("w").shape == std::vector<int64_t>{2, 4});
  CHECK(file.at("w").offset % 64 == 0);
}

TEST_CASE("gguf: broken headers") {
  TempDir dir;
  loongforge::test::write_file(dir / "empty.gguf", "");
  LF_CHECK_ERROR(GgufFile(dir / "empty.gguf"), ErrorCode::kBadData,
                 "empty.gguf: the header ends early");
  loongforge::test::write_file(dir / "other.gguf", "GGML and more bytes that do not matter");
  LF_CHECK_ERROR(GgufFile(dir / "other.gguf"), ErrorCode::kBadData,
                 "other.gguf: does not begin with GGUF");
  LF_CHECK_ERROR(GgufFile(dir / "absent.gguf"), ErrorCode::kNoInput, "absent.gguf");
  refuse(Builder(0, 0, 1), "has GGUF version 1");
  refuse(Builder(0, 0, 0x03000000), "is a big-endian GGUF file");
  refuse(Builder(kHuge, 0), "tensors, more than its 24 bytes can hold");
  refuse(Builder(0, kHuge), "metadata entries");
}

TEST_CASE("gguf: broken metadata") {
  const auto entry = [](std::string_view key, uint32_t type) {
    Builder b(0, 1);
    b.entry(key, type);
    return b;
  };
  refuse(entry("k", 13).data(32), "k: unknown value type 13");
  refuse(entry("k", 8).number(kHuge).data(32), "k: a text's length is");
  refuse(entry("k", 7).number(uint8_t{2}).data(32), "k: a bool has the value 2");
  refuse(entry("k", 9).number(uint32_t{8}).number(kHuge).data(32), "k: an array claims");
  refuse(entry("k", 9).number(uint32_t{0}).number(uint64_t{1000}).data(32),
         "k: an array claims 1000 values");
  refuse(entry("k", 9).number(uint32_t{77}).number(uint64_t{1}).data(32),
         "k: unknown value type 77");
  refuse(entry("k", 10), "k: the header ends early");
  Builder deep = entry("k", 9);
  for (int i = 0; i < 8; ++i) deep.number(uint32_t{9}).number(uint64_t{1});
  refuse(deep.data(64), "k: arrays are nested too deep");
  Builder twice(0, 2);
  twice.entry("k", 0).number(uint8_t{1}).entry("k", 0).number(uint8_t{1});
  refuse(twice, "k: the metadata key stands twice");
  Builder key(0, 1);
  refuse(key.number(kHuge).data(64), "metadata entry 0: a text's length is");
  for (uint32_t alignment : {0u, 4u, 12u, 0x80000000u}) {
    refuse(entry("general.alignment", 4).number(alignment), "general.alignment: is");
  }
  refuse(entry("general.alignment", 8).text("x"), "general.alignment: is string, not integer");
}

TEST_CASE("gguf: broken tensors") {
  const auto one = [](std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset,
                      size_t data) {
    Builder b(1, 0);
    b.tensor("w", dims, type, offset).data(data);
    return b;
  };
  {
    TempDir dir;
    CHECK(open(dir, one({8}, 0, 0, 32)).tensors().size() == 1);
  }
  refuse(one({8}, 0, 0, 31), "w: 32 bytes of data at offset 0 end beyond the file");
  refuse(one({8}, 0, 32, 32), "w: 32 bytes of data at offset 32 end beyond the file");
  refuse(one({8}, 0, kHuge * 15, 32), "end beyond the file");
  refuse(one({8}, 0, 8, 64), "w: its offset 8 is no multiple of the alignment");
  refuse(one({kHuge, kHuge}, 0, 0, 32), "w: its number of elements overflows");
  refuse(one({~uint64_t{0}}, 0, 0, 32), "w: its number of elements overflows");
  refuse(one({uint64_t{1} << 62}, 0, 0, 32), "w: its size overflows");
  refuse(one({1, 2, 3, 4, 5}, 0, 0, 1000), "w: has 5 dimensions");
  refuse(one({8}, 4, 0, 32), "w: unknown tensor type 4");
  refuse(one({8}, 999, 0, 32), "w: unknown tensor type 999");
  refuse(one({33}, 8, 0, 100),
         "w: its last dimension, 33, is no multiple of the block of Q8_0, 32");
  Builder overlap(2, 0);
  refuse(overlap.tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).data(64),
         "b: its data overlaps that of a");
  Builder twice(2, 0);
  refuse(twice.tensor("a", {8}, 0, 0).tensor("a", {8}, 0, 32).data(64),
         "a: the tensor's name stands twice");
  Builder name(1, 0);
  refuse(name.tensor(std::string(65, 'n'), {8}, 0, 0).data(64), "tensor 0: a text's length is 65");
  Builder cut(1, 0);
  cut.tensor("w", {8}, 0, 0);
  cut.bytes.resize(cut.bytes.size() - 3);
  refuse(cut, "w: the header ends early");
}

TEST_CASE("gguf: a file cut anywhere in its header is refused") {
  const std::string whole =
      loongforge::test::read_file(loongforge::test::data_dir() / "formats/gguf/types.gguf");
  TempDir dir;
  for (size_t size = 0; size < whole.size(); size += size < 900 ? 1 : 1013) {
    loongforge::test::write_file(dir / "cut.gguf", whole.substr(0, size));
    LF_CHECK_ERROR(GgufFile(dir / "cut.gguf"), ErrorCode::kBadData, "cut.gguf");
  }
}

TEST_CASE(
    "gguf: flipped bytes in the header end in an Error or in a readable file, never otherwise") {
  const std::string whole =
      loongforge::test::read_file(loongforge::test::data_dir() / "formats/gguf/types.gguf");
  TempDir dir;
  int refused = 0;
  for (size_t i = 0; i < 900; ++i) {
    for (int bit : {0, 6, 7}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      loongforge::test::write_file(dir / "flip.gguf", bytes);
      try {
        const GgufFile file(dir / "flip.gguf");
        for (const StoredTensor& tensor : file.tensors()) {
          if (file.readable_f32(tensor))
            CHECK(file.read_f32(tensor).size() == static_cast<size_t>(tensor.elements()));
        }
      } catch (const loongforge::Error& error) {
        ++refused;
        CHECK(std::string(error.what()).find("flip.gguf") != std::string::npos);
      }
    }
  }
  CHECK(refused > 500);
}

TEST_CASE("gguf: every weight of the real SmolLM2-135M has the reference's shape, sum and norm") {
  const char* path = std::getenv("LOONGFORGE_SMOLLM2_GGUF");
  const std::filesystem::path reference =
      loongforge::test::shared_dir() / "golden/smollm2-135m/reference.json";
  if (path == nullptr || loongforge::test::shared_dir().empty() ||
      !std::filesystem::exists(reference)) {
    MESSAGE(
        "SKIPPED: no model (LOONGFORGE_SMOLLM2_GGUF) or no shared test data "
        "(LOONGFORGE_TEST_DATA)");
    return;
  }
  const GgufFile file(path);
  const auto gguf_name = [](std::string name) {
    const std::pair<const char*, const char*> parts[] = {
        {"model.layers.", "blk."},           {"model.embed_tokens", "token_embd"},
        {"model.norm", "output_norm"},       {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"}, {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
        {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"}};
    for (const auto& [from, to] : parts) {
      if (const size_t at = name.find(from); at != std::string::npos)
        name.replace(at, std::string_view(from).size(), to);
    }
    return name;
  };
  const auto weights =
      loongforge::support::read_json(reference.string()).at("weights_shape_sum_l2");
  CHECK(weights.as_object().size() == file.tensors().size());
  for (const auto& [name, facts] : weights.as_object()) {
    CAPTURE(name);
    const StoredTensor& tensor = file.at(gguf_name(name));
    const auto& shape = facts.as_array()[0].as_array();
    REQUIRE(shape.size() == tensor.shape.size());
    for (size_t i = 0; i < shape.size(); ++i) CHECK(shape[i].as_int() == tensor.shape[i]);
    double sum = 0.0, squares = 0.0, magnitudes = 0.0;
    for (float x : file.read_f32(tensor)) {
      sum += x;
      squares += static_cast<double>(x) * x;
      magnitudes += std::fabs(x);
    }
    // The reference summed in its own order; the bound is fp32's rounding of the result.
    CHECK(std::fabs(sum - facts.as_array()[1].as_double()) <= 1e-6 * magnitudes);
    CHECK(std::fabs(std::sqrt(squares) - facts.as_array()[2].as_double()) <=
          1e-6 * std::sqrt(squares));
  }
}
