// Kernels split over the pool's threads. How work is cut never changes a result (kernels/ promises
// it). Thread-safety: the caller's thread only.
#pragma once

#include "base/pool.h"
#include "graph/op.h"
#include "kernels/gemm.h"

namespace loongforge::graph {

// Runs one product, cut by rows where there are many, else by columns.
void run_gemm(ThreadPool& pool, const kernels::GemmJob& job);

// body(r0, r1) over [0, rows) in chunks of a multiple of kernels::kTokenBlock rows.
template <class F>
void run_rows(ThreadPool& pool, int64_t rows, F&& body) {
  constexpr int64_t kChunk = kernels::kTokenBlock;
  const int64_t blocks = (rows + kChunk - 1) / kChunk;
  const int64_t tasks = std::min<int64_t>(blocks, pool.threads() * int64_t{4});
  if (tasks == 0) return;
  pool.run(tasks, [&](int64_t t, int) {
    const int64_t b0 = blocks * t / tasks, b1 = blocks * (t + 1) / tasks;
    body(b0 * kChunk, std::min(rows, b1 * kChunk));
  });
}

// Adds the time of its life to a Profile's field, less what Timed objects made meanwhile take for
// theirs; nothing where there is no profile.
class Timed {
 public:
  Timed(RunContext& context, double Profile::*field);
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  RunContext& context_;
  double* sum_ = nullptr;
  double* outer_ = nullptr;
  double start_ = 0;
};

}  // namespace loongforge::graph
