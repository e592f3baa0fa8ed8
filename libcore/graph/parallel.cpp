#include "graph/parallel.h"

#include <algorithm>

#include "base/clock.h"
#include "kernels/fp8_gemm.h"

namespace loongforge::graph {
namespace {

double seconds_now() { return static_cast<double>(monotonic_ns()) * 1e-9; }

}  // namespace

void run_gemm(ThreadPool& pool, const kernels::GemmJob& job) {
  pool.reserve_scratch(kernels::loongblas_fp8_gemm_scratch_bytes(job));
  int64_t m_step = 1, n_step = 1;
  kernels::gemm_steps(job.precision, &m_step, &n_step);
  const int64_t threads = pool.threads();
  const int64_t m_units = (job.m + m_step - 1) / m_step, n_units = (job.n + n_step - 1) / n_step;
  // Each row range decodes the whole weight again, so rows are cut coarsely, and only where there
  // are plenty of them.
  constexpr int64_t kFewRows = 96;
  // Each column range packs all of A again.
  constexpr int64_t kFewColumns = 256;
  int64_t m_tasks = 1, n_tasks = 1;
  if (threads > 1) {
    if (job.m >= kFewRows * threads && m_units >= threads) {
      m_tasks = std::min(m_units, job.m >= 4 * kFewRows * threads ? 2 * threads : threads);
    } else {
      n_tasks = std::min(n_units, std::clamp<int64_t>(job.n / kFewColumns, threads, 4 * threads));
      if (n_tasks < threads) m_tasks = std::min(m_units, (threads + n_tasks - 1) / n_tasks);
    }
  }
  pool.run(m_tasks * n_tasks, [&](int64_t task, int worker) {
    const int64_t i = task / n_tasks, j = task % n_tasks;
    kernels::loongblas_fp8_gemm(job, std::min(job.m, m_units * i / m_tasks * m_step),
                                std::min(job.m, m_units * (i + 1) / m_tasks * m_step),
                                std::min(job.n, n_units * j / n_tasks * n_step),
                                std::min(job.n, n_units * (j + 1) / n_tasks * n_step),
                                pool.scratch(worker));
  });
}

Timed::Timed(RunContext& context, double Profile::*field) : context_(context) {
  if (context.profile == nullptr) return;
  sum_ = &(context.profile->*field);
  outer_ = context.timed;
  context.timed = sum_;
  start_ = seconds_now();
}

Timed::~Timed() {
  if (sum_ == nullptr) return;
  const double seconds = seconds_now() - start_;
  *sum_ += seconds;
  if (outer_ != nullptr) *outer_ -= seconds;
  context_.timed = outer_;
}

void RunStats::add(const RunStats& other) {
  loss_sum += other.loss_sum;
  valid += other.valid;
  quant::add_stats(&tensors, other.tensors);
}

kernels::MatOut RunContext::out(const View& view) const {
  if (!view.valid()) return {nullptr, 0, kernels::Elem::kF32};
  const BufferSpec& spec = (*buffers)[static_cast<size_t>(view.buffer)];
  uint8_t* base = arena + (*offsets)[static_cast<size_t>(view.buffer)];
  return {base + view.col0 * kernels::elem_bytes(spec.elem), spec.cols, spec.elem};
}

kernels::Mat RunContext::mat(const View& view) const {
  const kernels::MatOut o = out(view);
  return {o.data, o.ld, o.elem};
}

}  // namespace loongforge::graph
