#include "formats/gguf_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::test::bytes_of;
using loongforge::test::TempDir;

TEST_CASE("gguf_writer: what was written is read, as llama.cpp lays it out") {
  TempDir dir;
  GgufKeys keys;
  keys.emplace_back("general.architecture", GgufValue{std::string("llama")});
  keys.emplace_back("u", GgufValue{int64_t{4294967295}});
  keys.emplace_back("i", GgufValue{int64_t{-5}});
  keys.emplace_back("wide", GgufValue{int64_t{1} << 40});
  keys.emplace_back("wider", GgufValue{uint64_t{1} << 63});
  keys.emplace_back("f", GgufValue{0.5});
  keys.emplace_back("b", GgufValue{true});
  keys.emplace_back("texts", GgufValue{std::vector<std::string>{"a", "", "\xe2\x96\x81"}});
  keys.emplace_back("ints", GgufValue{std::vector<int64_t>{-1, 7}});
  keys.emplace_back("floats", GgufValue{std::vector<double>{0.25, -1e9}});
  keys.emplace_back("bools", GgufValue{std::vector<bool>{true, false}});
  const std::vector<NewGgufTensor> tensors = {{"vector", GgufOut::kF32, {3}},
                                              {"empty", GgufOut::kF16, {0, 4}},
                                              {"matrix", GgufOut::kBF16, {2, 5}},
                                              {std::string(63, 'n'), GgufOut::kQ8_0, {2, 64}}};
  CHECK(tensors[3].bytes() == 2 * 2 * 34);
  uint64_t size = 0;
  {
    GgufWriter writer(dir / "m.gguf", keys, tensors);
    size = writer.file_bytes();
    writer.write("vector", bytes_of("01234567"));
    writer.write("vector", bytes_of("89ab"));
    writer.write("matrix", bytes_of("abcdefghijklmnopqrst"));
    writer.write(tensors[3].name, bytes_of(std::string(136, '\1')));
    CHECK(!std::filesystem::exists(dir / "m.gguf"));
    writer.finish();
  }
  CHECK(std::filesystem::file_size(dir / "m.gguf") == size);
  CHECK(size % 32 == 0);  // the last tensor is padded as well
  const GgufFile file(dir / "m.gguf");
  CHECK(file.version() == 3);
  CHECK(file.require_int("u") == 4294967295);
  CHECK(file.require_int("i") == -5);
  CHECK(file.require_int("wide") == int64_t{1} << 40);
  CHECK(std::get<uint64_t>(file.find_meta("wider")->value) == uint64_t{1} << 63);
  CHECK(file.require_double("f") == 0.5);
  CHECK(*file.get_bool("b"));
  CHECK(*file.get_strings("texts") == std::vector<std::string>{"a", "", "\xe2\x96\x81"});
  CHECK(*file.get_ints("ints") == std::vector<int64_t>{-1, 7});
  CHECK(*file.get_doubles("floats") == std::vector<double>{0.25, -1e9});
  CHECK(std::get<std::vector<bool>>(file.find_meta("bools")->value) ==
        std::vector<bool>{true, false});
  REQUIRE(file.tensors().size() == tensors.size());
  uint64_t next = file.tensors()[0].offset;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& tensor = file.tensors()[i];
    CHECK(tensor.name == tensors[i].name);
    CHECK(tensor.shape == tensors[i].shape);
    CHECK(tensor.type == gguf_out_name(tensors[i].type));
    CHECK(tensor.offset == next);  // ascending, without holes
    CHECK(tensor.offset % 32 == 0);
    next += (tensor.bytes + 31) / 32 * 32;
  }
  CHECK(next == size);
  std::vector<uint8_t> bytes(20);
  file.read_range(file.at("matrix"), 0, bytes);
  CHECK(std::string(bytes.begin(), bytes.end()) == "abcdefghijklmnopqrst");
}

TEST_CASE("gguf_writer: what no file can hold") {
  TempDir dir;
  const auto refuse = [&](const GgufKeys& keys, std::vector<NewGgufTensor> tensors,
                          const char* text) {
    CAPTURE(text);
    LF_CHECK_ERROR(GgufWriter(dir / "m.gguf", keys, tensors), ErrorCode::kBadData, text);
    CHECK(dir.entries() == 0);
  };
  refuse({{"k", {true}}, {"k", {false}}}, {}, "m.gguf: k: the key stands twice");
  refuse({{"k", {std::vector<int64_t>{int64_t{1} << 31}}}}, {}, "does not fit an INT32");
  refuse({{"k", {GgufValue::Nested{}}}}, {}, "arrays of arrays");
  refuse({}, {{"t", GgufOut::kF32, {1}}, {"t", GgufOut::kF32, {1}}}, "m.gguf: t: stands twice");
  refuse({}, {{std::string(64, 'n'), GgufOut::kF32, {1}}}, "the name has 64 bytes");
  refuse({}, {{"", GgufOut::kF32, {1}}}, "the name has 0 bytes");
  refuse({}, {{"t", GgufOut::kF32, {1, 1, 1, 1, 1}}}, "more than four dimensions");
  refuse({}, {{"t", GgufOut::kQ8_0, {2, 33}}}, "rows of 33 are no whole blocks of Q8_0");
  refuse({}, {{"t", GgufOut::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}, "its size overflows");
  refuse({}, {{"t", GgufOut::kF32, {int64_t{1} << 60}}, {"u", GgufOut::kF32, {int64_t{1} << 60}}},
         "overflows");
}

TEST_CASE("gguf_writer: bytes out of place") {
  TempDir dir;
  {
    GgufWriter writer(dir / "m.gguf", {}, {{"a", GgufOut::kF32, {1}}, {"b", GgufOut::kF32, {1}}});
    LF_CHECK_ERROR(writer.write("b", bytes_of("0123")), ErrorCode::kFailed,
                   "m.gguf: b: is not the tensor whose bytes are due");
    LF_CHECK_ERROR(writer.write("a", bytes_of("01234")), ErrorCode::kFailed, "more bytes");
    writer.write("a", bytes_of("0123"));
    LF_CHECK_ERROR(writer.finish(), ErrorCode::kFailed, "m.gguf: b: some of its bytes");
  }
  CHECK(dir.entries() == 0);
}

TEST_CASE("gguf_writer: Q8_0 is the gguf package's, bit for bit") {
  const SafetensorsFile golden(loongforge::test::data_dir() / "formats/gguf/q8_0.safetensors");
  std::vector<float> x = golden.read_f32(golden.at("x"));
  std::vector<uint8_t> want(golden.at("q8_0").bytes), got(want.size());
  golden.read_range(golden.at("q8_0"), 0, want);
  const auto blocks = static_cast<int64_t>(x.size()) / kQ8Block;
  REQUIRE(want.size() == static_cast<size_t>(blocks) * 34);
  CHECK(quantise_q8_0(x.data(), blocks, got.data()));
  CHECK(got == want);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -1e9f}) {
    x[70] = bad;
    CHECK_FALSE(quantise_q8_0(x.data(), blocks, got.data()));
  }
  std::vector<float> tiny(32, 1e-42f);  // a scale whose inverse no fp32 holds
  CHECK(quantise_q8_0(tiny.data(), 1, got.data()));
  CHECK(std::all_of(got.begin(), got.begin() + 34, [](uint8_t byte) { return byte == 0; }));
}
