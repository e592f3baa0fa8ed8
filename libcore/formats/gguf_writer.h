// Writing GGUF files, version 3, as llama.cpp's own reader wants them: dimensions reversed, data of
// the tensors in their order, each at the next multiple of the alignment and without holes, the
// last one padded too. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/api.h"
#include "formats/gguf.h"

namespace loongforge::formats {

enum class GgufOut : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8, kBF16 = 30 };  // the format's ids

constexpr int64_t kQ8Block = 32;  // elements of a block of Q8_0

struct NewGgufTensor {
  std::string name;
  GgufOut type = GgufOut::kF32;
  std::vector<int64_t> shape;  // PyTorch's order; of Q8_0 the last dimension is whole blocks
  uint64_t bytes() const;      // kBadData Error when the size overflows or blocks are cut
};

const char* gguf_out_name(GgufOut type) noexcept;  // "Q8_0"

// fp32 to blocks of Q8_0 as ggml's reference does: scale amax / 127 as f16, codes rounded away from
// zero at ties. False when a value is no number or a scale is beyond f16: out is then of no use.
LF_API bool quantise_q8_0(const float* in, int64_t blocks, uint8_t* out) noexcept;

using GgufKeys = std::vector<std::pair<std::string, GgufValue>>;

class LF_API GgufWriter {
 public:
  // keys are written as: integers UINT32 where they fit, else INT32, INT64 or UINT64; floats
  // FLOAT32; arrays of integers INT32, of floats FLOAT32, of bools and texts as they are. kBadData
  // Error naming what is wrong: a key or name twice, a name of more than 63 bytes, more than four
  // dimensions, a value that does not fit, nested arrays.
  GgufWriter(const std::filesystem::path& path, const GgufKeys& keys,
             std::vector<NewGgufTensor> tensors);
  ~GgufWriter();

  // The next bytes of the tensor; tensors follow each other in the order given.
  void write(std::string_view name, std::span<const uint8_t> bytes);
  // The file appears under its name. kFailed Error when bytes lack.
  void finish();
  uint64_t file_bytes() const noexcept;  // of the whole file

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::formats
