// A scalar model of a CPU that multiplies FP8: what a table for the slot of native_fp8.h computes.
// Sums run in float64 and ascending, so its bits are not those of the kernels.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/fp8_matrix.h"
#include "kernels/native_fp8.h"

namespace loongforge::kernels::test {

inline std::atomic<int> native_calls{0};      // products that the model computed
inline std::atomic<bool> native_takes{true};  // what it answers when asked
inline std::atomic<int> native_questions{0};  // how often it was asked

inline float bf16_image(uint16_t bits) {
  const uint32_t u = static_cast<uint32_t>(bits) << 16;
  float x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
inline float stored(const Mat& m, int64_t i, int64_t j) {  // kF32 or kBf16
  const auto* p = static_cast<const uint8_t*>(m.data) + (i * m.ld + j) * elem_bytes(m.elem);
  uint32_t u = 0;
  std::memcpy(&u, p, static_cast<size_t>(elem_bytes(m.elem)));
  if (m.elem == Elem::kBf16) u <<= 16;
  float x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
// What enters a product: the value of a code, or the bf16 operand of anything else.
inline double operand(const Mat& m, int64_t i, int64_t j) {
  if (m.elem == Elem::kF32 || m.elem == Elem::kBf16) {
    const float x = stored(m, i, j);
    uint32_t u;
    std::memcpy(&u, &x, sizeof u);
    return bf16_image(round_operand(u));
  }
  const auto code = static_cast<const uint8_t*>(m.data)[i * m.ld + j];
  return std::ldexp(fp8_value(m.elem, code), m.exps[i * m.ld_exps + j / 128]);
}

inline bool model_takes(const GemmJob&) noexcept {
  ++native_questions;
  return native_takes;
}
inline size_t model_scratch(const GemmJob&) noexcept { return 64; }

// Element (kk, j) of a term's B, all of it.
inline std::vector<double> b_values(const GemmTerm& t, int64_t n) {
  using B = GemmTerm::B;
  std::vector<double> b(static_cast<size_t>(t.k * n));
  if (t.b_kind == B::kPlain || t.b_kind == B::kPlainT) {
    for (int64_t kk = 0; kk < t.k; ++kk)
      for (int64_t j = 0; j < n; ++j)
        b[static_cast<size_t>(kk * n + j)] =
            t.b_kind == B::kPlain ? operand(t.b, kk, j) : operand(t.b, j, kk);
    return b;
  }
  std::vector<float> row(static_cast<size_t>(t.w->k));
  for (int64_t r = 0; r < t.w->n; ++r) {
    const auto index = static_cast<int32_t>(r);
    gather_weight_rows(*t.w, &index, 1, {row.data(), t.w->k, Elem::kF32});
    for (int64_t c = 0; c < t.w->k; ++c)
      b[static_cast<size_t>(t.b_kind == B::kWeightT ? c * n + r : r * n + c)] =
          row[static_cast<size_t>(c)];
  }
  return b;
}

inline void model_gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                       void*) noexcept {
  ++native_calls;
  std::vector<std::vector<double>> b;
  for (int t = 0; t < job.n_terms; ++t) b.push_back(b_values(job.terms[t], job.n));
  for (int64_t i = m0; i < m1; ++i) {
    for (int64_t j = n0; j < n1; ++j) {
      const Mat c{job.c.data, job.c.ld, job.c.elem};
      double sum = job.accumulate ? static_cast<double>(stored(c, i, j)) : 0.0;
      for (int t = 0; t < job.n_terms; ++t) {
        const GemmTerm& term = job.terms[t];
        for (int64_t kk = 0; kk < term.k; ++kk)
          sum += (term.a_transposed ? operand(term.a, kk, i) : operand(term.a, i, kk)) *
                 b[static_cast<size_t>(t)][static_cast<size_t>(kk * job.n + j)];
      }
      const float x = static_cast<float>(sum) + (job.bias == nullptr ? 0.0f : job.bias[j]);
      uint32_t u;
      std::memcpy(&u, &x, sizeof u);
      if (job.c.elem == Elem::kF32) {
        static_cast<float*>(job.c.data)[i * job.c.ld + j] = x;
      } else {
        static_cast<Bf16*>(job.c.data)[i * job.c.ld + j].bits = round_operand(u);
      }
    }
  }
}

inline constexpr NativeFp8 kNativeModel = {
    "model", [](const CpuFeatures& cpu) noexcept { return cpu.amx_fp8; }, model_takes,
    model_scratch, model_gemm};

// Puts the model in the slot for a scope.
class UseNative {
 public:
  explicit UseNative(bool takes) : before_(native_fp8()) {
    native_takes = takes;
    native_calls = 0;
    native_questions = 0;
    set_native_fp8(&kNativeModel);
  }
  ~UseNative() { set_native_fp8(before_); }
  UseNative(const UseNative&) = delete;
  UseNative& operator=(const UseNative&) = delete;

 private:
  const NativeFp8* before_;
};

}  // namespace loongforge::kernels::test
