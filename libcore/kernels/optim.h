// Optimizer and gradient kernels on fp32 arrays; bit-equal on every ISA (see rows.h on sums).
// Thread-safety: disjoint ranges may run in parallel.
#pragma once

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// Decoupled AdamW as torch.optim.AdamW: p *= 1 - lr * weight_decay; m = b1 m + (1 - b1) g; v = b2 v
// + (1 - b2) g^2; p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), g = grad * grad_scale. bias1
// = 1 - b1^t, bias2 = 1 - b2^t. In double, so that 1 - beta2 is not that of a rounded beta2; a
// step's constants are rounded to fp32 once.
struct AdamW {
  double lr, beta1, beta2, eps, weight_decay, grad_scale, bias1, sqrt_bias2;
};
LF_API void adamw(const AdamW& h, float* param, float* m, float* v, const float* grad,
                  int64_t n) noexcept;

// The same update of arrays that are kept narrow. Every narrow value is rounded stochastically: up
// or down in proportion to the distance, so that its mean is the value, by one 16-bit draw per
// element.
struct AdamWArrays {
  void* param;
  Elem param_elem;  // kF32 or kBf16
  void* m;
  void* v;       // kE4M3: of sqrt(v), whose range is half as many binades; never 0 where v is not
  Elem moments;  // kF32, kBf16 or kE4M3
  int8_t *m_exps, *v_exps;       // kE4M3: one power-of-two scale per kFeatureBlock elements
  const uint16_t* param_draws;   // kBf16; one each, where it is needed
  const uint16_t* moment_draws;  // kBf16, kE4M3
};
LF_API void adamw_narrow(const AdamW& h, const AdamWArrays& a, const float* grad,
                         int64_t n) noexcept;
// Moments from and to fp32, to nearest: what a checkpoint of another format needs. root: the square
// is meant (v as kE4M3).
LF_API void read_moments(const void* src, const int8_t* exps, Elem elem, bool root, float* out,
                         int64_t n) noexcept;
LF_API void write_moments(const float* src, void* dst, int8_t* exps, Elem elem, bool root,
                          int64_t n) noexcept;

LF_API void accumulate(float* sum, const float* x, int64_t n) noexcept;  // sum += x
LF_API void scale(float* x, float factor, int64_t n) noexcept;
LF_API double sum_squares(const float* x, int64_t n) noexcept;  // 16 lanes of double, one tree
LF_API double sum(const float* x, int64_t n) noexcept;          // 16 lanes of double, one tree
LF_API bool all_finite(const void* x, Elem elem, int64_t n) noexcept;

}  // namespace loongforge::kernels
