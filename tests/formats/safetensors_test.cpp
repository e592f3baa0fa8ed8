#include "formats/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::tensor::DType;
using loongforge::test::TempDir;

namespace {

class Case {
 public:
  // Opens a file of this header and so many data bytes; an Error names the file and the text.
  void refuse(std::string_view header, size_t data_bytes, const char* text) {
    refuse_bytes(loongforge::test::safetensors_bytes(header, std::string(data_bytes, 'x')), text);
  }
  void refuse_bytes(const std::string& bytes, const char* text) {
    loongforge::test::write_file(dir_ / "bad.safetensors", bytes);
    LF_CHECK_ERROR(SafetensorsFile(dir_ / "bad.safetensors"), ErrorCode::kBadData, text);
    LF_CHECK_ERROR(SafetensorsFile(dir_ / "bad.safetensors"), ErrorCode::kBadData,
                   "bad.safetensors");
  }
  SafetensorsFile open(std::string_view header, std::string_view data) {
    loongforge::test::write_file(dir_ / "good.safetensors",
                                 loongforge::test::safetensors_bytes(header, data));
    return SafetensorsFile(dir_ / "good.safetensors");
  }

 private:
  TempDir dir_;
};

}  // namespace

TEST_CASE("safetensors: a small file") {
  Case c;
  const SafetensorsFile file = c.open(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I16","shape":[2,2],"data_offsets":[4,12],"extra":[1]},)"
      R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]}}   )",
      std::string("\0\0\x80\x3f"
                  "\1\0\2\0\3\0\4\0",
                  12));
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.tensors().size() == 3);
  CHECK(file.read_f32(file.at("scalar")) == std::vector<float>{1.0f});
  CHECK(file.at("none").bytes == 0);
  CHECK(file.read_f32(file.at("none")).empty());
  const StoredTensor& b = file.at("b");
  CHECK(b.dtype == DType::kI16);
  CHECK(b.rows() == 2);
  CHECK(file.row_bytes(b) == 4);
  uint8_t row[4];
  file.read_rows(b, 1, 2, row);
  CHECK(row[0] == 3);
  CHECK(row[2] == 4);
  CHECK_FALSE(file.readable_f32(b));
  LF_CHECK_ERROR(file.read_f32(b), ErrorCode::kBadData, "good.safetensors: b: tensors of type I16");
  LF_CHECK_ERROR(file.read_range(b, 6, row), ErrorCode::kBadData,
                 "good.safetensors: b: has 8 bytes");
  LF_CHECK_ERROR(file.read_rows(b, 1, 3, row), ErrorCode::kBadData, "has 2 rows");
  LF_CHECK_ERROR(file.at("c"), ErrorCode::kBadData, "has no tensor c");
}

TEST_CASE(
    "safetensors: types this suite has no name for are listed, and whole bytes are asked of small "
    "ones") {
  Case c;
  const SafetensorsFile file = c.open(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]},)"
                                      R"("b":{"dtype":"C64","shape":[1],"data_offsets":[3,11]}})",
                                      "01234567890");
  CHECK(file.at("a").type == "F4");
  CHECK_FALSE(file.at("a").dtype.has_value());
  LF_CHECK_ERROR(file.row_bytes(file.at("a")), ErrorCode::kBadData, "do not end on whole bytes");
  LF_CHECK_ERROR(file.read_f32(file.at("b")), ErrorCode::kBadData,
                 "good.safetensors: b: tensors of type C64");
  c.refuse(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2,
           "a: shape [3] of F4 has no valid size");
}

TEST_CASE("safetensors: broken files") {
  Case c;
  c.refuse_bytes("", "has 0 bytes");
  c.refuse_bytes("abc", "has 3 bytes");
  c.refuse_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "above the format's limit");
  c.refuse_bytes(std::string("\x64\0\0\0\0\0\0\0{}", 10),
                 "header's length is 100 bytes, but the file has 10");
  c.refuse_bytes(std::string("\0\0\0\0\0\0\0\0", 8), "does not begin with {");
  c.refuse(" {}", 0, "does not begin with {");
  c.refuse("[]", 0, "does not begin with {");
  c.refuse("{\"a\":", 0, "invalid JSON");
  c.refuse("{}", 1, "1 bytes follow");
  c.refuse(R"({"a":1})", 0, "a: the header's entry lacks");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "a: the header's entry lacks");
  c.refuse(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4,
           "a: unknown dtype \"F31\"");
  c.refuse(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "a: dtype is integer");
  c.refuse(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "a: shape is integer");
  c.refuse(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "a: shape [-1]");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "a: shape [1.0]");
  c.refuse(R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4,
           "a: shape");
  c.refuse(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4,
           "has no valid size");
  c.refuse(R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,4]}})", 4,
           "has no valid size");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "a: data_offsets [4,0]");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "a: data_offsets [0]");
  c.refuse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
           "a: data_offsets hold 4 bytes");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "a: data ends at byte");
  c.refuse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "(a hole)");
  c.refuse(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
      6, "b: data begins at 2, but the tensor before it ends at 4 (an overlap)");
  c.refuse(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
      8, "duplicate key \"a\"");
  c.refuse(R"({"__metadata__":{"format":1}})", 0, "__metadata__.format is integer");
  c.refuse(R"({"__metadata__":"pt"})", 0, "__metadata__ is string");
  c.refuse("{\"a\\nb\\u0007\":{}}", 0, "a?b?: the header's entry lacks");
  LF_CHECK_ERROR(SafetensorsFile("/nonexistent/model.safetensors"), ErrorCode::kNoInput,
                 "/nonexistent/model.safetensors");
}

TEST_CASE("safetensors: a file cut at any byte is refused") {
  const std::string whole = loongforge::test::read_file(
      loongforge::test::data_dir() / "formats/adapter_qwen3/adapter_model.safetensors");
  REQUIRE(whole.size() > 1000);
  TempDir dir;
  for (size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 997) {
    loongforge::test::write_file(dir / "cut.safetensors", whole.substr(0, size));
    LF_CHECK_ERROR(SafetensorsFile(dir / "cut.safetensors"), ErrorCode::kBadData,
                   "cut.safetensors");
  }
}

TEST_CASE("safetensors: flipped bits in the header end in an Error or in a readable file") {
  const std::string whole =
      loongforge::test::read_file(loongforge::test::data_dir() / "formats/gguf/types.safetensors");
  TempDir dir;
  int refused = 0;
  for (size_t i = 0; i < 1000; ++i) {
    for (int bit : {0, 4, 7}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      loongforge::test::write_file(dir / "flip.safetensors", bytes);
      try {
        const SafetensorsFile file(dir / "flip.safetensors");
        for (const StoredTensor& tensor : file.tensors()) {
          if (!file.readable_f32(tensor)) continue;
          CHECK(file.read_f32(tensor).size() == static_cast<size_t>(tensor.elements()));
        }
      } catch (const loongforge::Error& error) {
        ++refused;
        CHECK(std::string(error.what()).find("flip.safetensors") != std::string::npos);
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("safetensors: what the reference writer wrote comes out of ours byte for byte") {
  const std::filesystem::path folder = loongforge::test::data_dir() / "formats";
  TempDir dir;
  for (const char* name : {"single/model.safetensors", "gguf/types.safetensors",
                           "adapter_llama3/adapter_model.safetensors"}) {
    const SafetensorsFile in(folder / name);
    std::vector<NewTensor> tensors;
    for (const StoredTensor& t : in.tensors()) tensors.push_back({t.name, *t.dtype, t.shape});
    std::reverse(tensors.begin(), tensors.end());  // the order given must not matter
    SafetensorsWriter writer(dir / "out.safetensors", tensors, in.metadata());
    CHECK_FALSE(std::filesystem::exists(dir / "out.safetensors"));
    for (const StoredTensor& t : in.tensors()) {
      std::vector<uint8_t> bytes(t.bytes);
      in.read_range(t, 0, bytes);
      const size_t half = bytes.size() / 2;
      writer.write(t.name, {bytes.data(), half});
      writer.write(t.name, {bytes.data() + half, bytes.size() - half});
    }
    CHECK(writer.complete());
    writer.finish();
    std::string original = loongforge::test::read_file(folder / name);
    if (in.metadata()
            .empty()) {  // numpy's writer sets none, ours always does: compare the contents
      const SafetensorsFile out(dir / "out.safetensors");
      for (const StoredTensor& t : in.tensors())
        CHECK(out.read_f32(out.at(t.name)) == in.read_f32(t));
      CHECK(out.tensors().size() == in.tensors().size());
      CHECK(out.metadata().at("format") == "pt");
    } else {
      CHECK(loongforge::test::read_file(dir / "out.safetensors") == original);
    }
    std::filesystem::remove(dir / "out.safetensors");
    CHECK(dir.entries() == 0);
  }
}

TEST_CASE("safetensors: the writer's own checks, and nothing is left without finish()") {
  TempDir dir;
  const auto path = dir / "w.safetensors";
  LF_CHECK_ERROR(SafetensorsWriter(path, {{"a", DType::kE4M3LA, {1}}}), ErrorCode::kBadData,
                 "a: safetensors files cannot hold E4M3LA");
  LF_CHECK_ERROR(SafetensorsWriter(path, {{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}),
                 ErrorCode::kBadData, "a: stands twice");
  LF_CHECK_ERROR(SafetensorsWriter(path, {{"a", DType::kU8, {-1}}}), ErrorCode::kBadData,
                 "dimension is negative");
  LF_CHECK_ERROR(SafetensorsWriter(path, {{"a", DType::kF64, {int64_t{1} << 61}}}),
                 ErrorCode::kBadData, "overflows");
  LF_CHECK_ERROR(SafetensorsWriter(path, {{"__metadata__", DType::kU8, {1}}}), ErrorCode::kBadData,
                 "no possible name");
  {
    SafetensorsWriter writer(path, {{"a", DType::kU8, {4}}, {"zero", DType::kF32, {0, 8}}});
    LF_CHECK_ERROR(writer.write("b", {}), ErrorCode::kFailed, "tensor b was not announced");
    writer.write("a", loongforge::test::bytes_of("xyz"));
    LF_CHECK_ERROR(writer.write("a", loongforge::test::bytes_of("zz")), ErrorCode::kFailed,
                   "more bytes");
    LF_CHECK_ERROR(writer.finish(), ErrorCode::kFailed,
                   "w.safetensors: a: 1 of its bytes were not written");
  }
  CHECK(dir.entries() == 0);
}
