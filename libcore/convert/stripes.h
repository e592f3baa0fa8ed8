// Turning a tensor's rows into the element type that is to be stored, stripe by stripe: what import
// and export share. A stripe is a multiple of 128 rows (or the end of the tensor), a few MB; its
// groups of 128 rows are converted in parallel. Thread-safety: one converter per thread; it uses
// the pool it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/quant.h"
#include "tensor/dtype.h"

namespace loongforge::convert {

// Where rows come from. read_raw: rows as they are stored, dense, of dtype `stored`; read_f32: the
// same rows as fp32. Both may be called from several threads, for [r0, r1) with r0 a multiple of
// 128.
struct RowSource {
  int64_t rows = 0, cols = 0;
  std::optional<tensor::DType> stored;  // empty: only fp32 can be had
  std::function<void(int64_t r0, int64_t r1, std::span<uint8_t> out)> read_raw;
  std::function<void(int64_t r0, int64_t r1, std::span<float> out)> read_f32;
};

// Receives dense rows of the target type, in order.
using RowSink = std::function<void(std::span<const uint8_t> rows, int64_t count)>;

struct Converted {
  // FP8: one per 128 x 128 block, row-major, powers of two of E4M3LA. NF4: the absmax of 1 x 64.
  std::vector<float> scales;
  kernels::QuantCounts counts;  // FP8; NF4: nan counts the blocks that hold a NaN or an infinity
};

class StripeConverter {
 public:
  explicit StripeConverter(ThreadPool& pool) : pool_(pool) {}
  // target: F32, BF16, F16, E4M3LA or NF4; any other type only where source.stored is the same.
  // after: called after each stripe with the rows done.
  Converted run(const RowSource& source, tensor::DType target, const RowSink& sink,
                const std::function<void(int64_t)>& after);

 private:
  void copy(const RowSource& source, const RowSink& sink,
            const std::function<void(int64_t)>& after);
  kernels::Mat read_group(const RowSource& source, int64_t r0, int64_t r1, int worker);
  void nf4_group(const RowSource& source, int64_t r0, int64_t r1, int worker, uint8_t* out,
                 float* absmax, kernels::QuantCounts* counts);
  void quantize_group(const RowSource& source, int64_t r0, int64_t r1, int worker, uint8_t* out,
                      int8_t* exps, kernels::QuantCounts* counts);
  // Runs body(task, worker) on the pool and rethrows the first exception, by task order.
  void run_tasks(int64_t tasks, const std::function<void(int64_t, int)>& body);

  ThreadPool& pool_;
  std::vector<std::vector<float>> scratch_;  // per worker
  std::vector<uint8_t> stripe_;
};

}  // namespace loongforge::convert
