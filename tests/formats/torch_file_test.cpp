#include "formats/torch_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/log.h"
#include "formats/safetensors.h"
#include "formats/sharded.h"
#include "support/checkpoint_files.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/torch_zip.h"

using namespace loongforge::formats;
using namespace loongforge::test;
using loongforge::ErrorCode;

namespace {

std::filesystem::path torch_dir() { return data_dir() / "formats/torch"; }

std::string g_warnings;
void keep_warning(loongforge::LogLevel, std::string_view message) { g_warnings += message; }

struct Refusals {
  TempDir dir;
  void operator()(const std::string& bytes, const char* text) {
    CAPTURE(text);
    write_file(dir / "m.bin", bytes);
    LF_CHECK_ERROR(TorchFile(dir / "m.bin"), ErrorCode::kBadData, text);
    LF_CHECK_ERROR(TorchFile(dir / "m.bin"), ErrorCode::kBadData, "m.bin");
  }
};

}  // namespace

TEST_CASE("torch_file: views, shared storages and every element type as torch reads them") {
  loongforge::set_log_sink(keep_warning);
  g_warnings.clear();
  const auto file = open_tensor_source(torch_dir() / "views.bin");
  loongforge::set_log_sink(nullptr);
  CHECK(g_warnings.find("views.bin: 2 entries are no tensors and left out, the first: steps") !=
        std::string::npos);
  CHECK(file->format() == "torch");
  CHECK(file->metadata().empty());
  const SafetensorsFile expected(torch_dir() / "views.safetensors");
  check_same_checkpoint(*file, expected);
  CHECK(file->at("tied").offset == file->at("base").offset);
  // Ranges of bytes that cut elements, and rows as fp32.
  std::mt19937 random(3);
  for (const StoredTensor& tensor : file->tensors()) {
    CAPTURE(tensor.name);
    const std::vector<uint8_t> whole = stored_bytes(expected, tensor.name);
    for (int i = 0; i < 40; ++i) {
      size_t a = random() % (whole.size() + 1), b = random() % (whole.size() + 1);
      if (a > b) std::swap(a, b);
      std::vector<uint8_t> part(b - a);
      file->read_range(tensor, a, part);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(a)));
    }
    if (!file->readable_f32(tensor)) continue;
    const std::vector<float> values = expected.read_f32(expected.at(tensor.name));
    CHECK(file->read_f32(tensor) == values);
    for (int64_t r = 0; r < tensor.rows(); ++r) {
      std::vector<float> row(static_cast<size_t>(tensor.cols()));
      file->read_rows_f32(tensor, r, r + 1, row);
      CHECK(std::equal(row.begin(), row.end(), values.begin() + r * tensor.cols()));
    }
  }
  std::vector<uint8_t> one(1);
  LF_CHECK_ERROR(file->read_range(file->at("scalar"), 4, one), ErrorCode::kBadData,
                 "views.bin: scalar");
}

TEST_CASE("torch_file: shards with an index") {
  const auto source = open_tensor_source(torch_dir() / "sharded");
  CHECK(source->format() == "torch");
  check_same_checkpoint(*source, SafetensorsFile(torch_dir() / "sharded/expected.safetensors"));
  const StoredTensor& transposed = source->at("b.weight");
  const SafetensorsFile expected(torch_dir() / "sharded/expected.safetensors");
  CHECK(source->read_f32(transposed) == expected.read_f32(expected.at("b.weight")));
  // A shard that is absent; safetensors go first where both exist.
  TempDir dir;
  const auto copy = [&](const char* name) {
    std::filesystem::copy(torch_dir() / "sharded" / name, dir / name);
  };
  copy("pytorch_model.bin.index.json");
  copy("pytorch_model-00001-of-00002.bin");
  LF_CHECK_ERROR(
      open_tensor_source(dir.path()), ErrorCode::kBadData,
      "pytorch_model-00002-of-00002.bin: does not exist, but the index maps c.weight to it");
  const std::string cut = read_file(torch_dir() / "sharded/pytorch_model-00002-of-00002.bin");
  write_file(dir / "pytorch_model-00002-of-00002.bin", cut.substr(0, cut.size() - 40));
  LF_CHECK_ERROR(open_tensor_source(dir.path()), ErrorCode::kBadData,
                 "pytorch_model-00002-of-00002.bin: has no zip directory");
  std::filesystem::copy(torch_dir() / "sharded/expected.safetensors", dir / "model.safetensors");
  CHECK(open_tensor_source(dir.path())->format() == "safetensors");
}

TEST_CASE("torch_file: files that are no state_dict; nothing of them is run") {
  const auto refuse = [](const char* name, const char* text) {
    LF_CHECK_ERROR(open_tensor_source(torch_dir() / name), ErrorCode::kBadData, text);
    LF_CHECK_ERROR(open_tensor_source(torch_dir() / name), ErrorCode::kBadData, name);
  };
  refuse("legacy.bin", "is a torch file of the form before torch 1.6");
  refuse("code.bin", "the pickle names posix.system, which is not on the list");
  refuse("module.bin", "the pickle names torch.nn.modules.linear.Linear, which is not on the list");
  refuse("nested.bin", "model: is a dictionary, not a tensor");
  refuse("list.bin", "holds a list, not a dictionary of tensors");
  LF_CHECK_ERROR(open_tensor_source(torch_dir() / "absent.bin"), ErrorCode::kNoInput, "absent.bin");
}

TEST_CASE("torch_file: storages and views that do not fit") {
  Refusals refuse;
  const std::string four(16, 'x');
  const auto tensor = [&](int64_t told, int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& stride) {
    return torch_bytes(pickle_of({{"w", pickle_tensor(pickle_storage("FloatStorage", "0", told),
                                                      offset, shape, stride)}}),
                       {{"0", four}});
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  refuse(tensor(5, 0, {4}, {1}),
         "m.bin: w: its storage, the entry data/0, has 16 bytes, not 5 elements of 4");
  refuse(tensor(kHuge, 0, {4}, {1}), "w: its storage, the entry data/0, has 16 bytes");
  refuse(tensor(4, 0, {5}, {1}),
         "w: its view of size [5], stride [1] at element 0 ends beyond its storage of 4 elements");
  refuse(tensor(4, 1, {4}, {1}), "w: its view of size [4], stride [1] at element 1 ends beyond");
  refuse(tensor(4, -1, {4}, {1}), "begins before its storage");
  refuse(tensor(4, kHuge, {4}, {1}), "ends beyond its storage");
  refuse(tensor(4, 0, {2, 3}, {1, 1}), "repeats elements: it has 6, its storage 4");
  refuse(tensor(4, 0, {1000000000}, {0}), "repeats elements: it has 1000000000, its storage 4");
  refuse(tensor(4, 0, {kHuge, kHuge}, {0, 0}), "overflows");
  refuse(tensor(4, 0, {4}, {kHuge}), "overflows");
  refuse(tensor(4, 0, {kHuge, kHuge, 0}, {1, 1, 1}), "overflows");
  refuse(tensor(4, 0, {-1}, {1}), "has a negative number");
  refuse(tensor(4, 3, {2}, {-1}), "has a negative number");
  refuse(torch_bytes(
             pickle_of({{"w", pickle_tensor(pickle_storage("FloatStorage", "1", 4), 0, {4}, {1})}}),
             {{"0", four}}),
         "w: its storage, the entry data/1, is absent");
  refuse(
      torch_bytes(
          pickle_of({{"w", pickle_tensor(pickle_storage("DoubleStorage", "0", 4), 0, {2}, {1})}}),
          {{"0", four}}),
      "has 16 bytes, not 4 elements of 8");
  refuse(zip_bytes({{.name = "m/other", .data = "x"}}), "is a zip file without data.pkl");
  refuse(zip_bytes({{.name = "a/data.pkl", .data = "x"}, {.name = "b/data.pkl", .data = "x"}}),
         "has two pickles, a/data.pkl and b/data.pkl");
  refuse(zip_bytes({{.name = "m/data.pkl", .data = pickle_of({})},
                    {.name = "m/byteorder", .data = "big"}}),
         "has the byte order \"big\"");
  refuse(zip_bytes({{.name = "m/data.pkl", .data = std::string((size_t{1} << 25) + 1, ')')}}),
         "m.bin: m/data.pkl: has 33554433 bytes, above the limit");
  refuse(zip_bytes({{.name = "m/data.pkl", .data = "x", .method = 8, .claimed_bytes = 4000000000}}),
         "m/data.pkl: the entry is compressed");
  refuse("PK", "too few for a zip file");
  // Tensors without elements need no storage.
  write_file(refuse.dir / "ok.bin",
             torch_bytes(pickle_of({{"e", pickle_tensor(pickle_storage("FloatStorage", "9", 0), 0,
                                                        {0, 3}, {3, 1})}}),
                         {}));
  CHECK(
      TorchFile(refuse.dir / "ok.bin").read_f32(TorchFile(refuse.dir / "ok.bin").at("e")).empty());
}

TEST_CASE("torch_file: every cut and every flipped byte ends in an error or sound tensors") {
  const std::string good = read_file(torch_dir() / "sharded/pytorch_model-00001-of-00002.bin");
  TempDir dir;
  for (size_t cut = 0; cut < good.size(); cut += 3) {
    write_file(dir / "m.bin", good.substr(0, cut));
    LF_CHECK_ERROR(TorchFile(dir / "m.bin"), ErrorCode::kBadData, "m.bin");
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    write_file(dir / "m.bin", bytes);
    try {
      const TorchFile file(dir / "m.bin");
      for (const StoredTensor& tensor : file.tensors()) {
        CHECK(tensor.bytes <= bytes.size());
        CHECK(stored_bytes(file, tensor.name).size() == tensor.bytes);
      }
    } catch (const loongforge::Error& error) {
      CHECK(error.code() == ErrorCode::kBadData);
      CHECK(std::string(error.what()).find("m.bin") != std::string::npos);
    }
  }
}
