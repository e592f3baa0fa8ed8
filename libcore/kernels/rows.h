// Row-wise and element-wise kernels of a transformer. Matrices are [rows, cols] views of kF32 or
// kBf16 elements; arithmetic is fp32; a bf16 result is rounded once (nearest even, under 2^-55
// becomes 0). Sums over a row run in 16 virtual lanes (element j goes to lane j % 16, in order)
// combined by one fixed tree, so results are bit-equal on every ISA. Each call handles rows [r0,
// r1); thread-safety: disjoint row ranges may run in parallel.
#pragma once

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// y = x / sqrt(mean(x^2) + eps) * weight over rows of `cols`. Norms of heads: one row per head (ld
// = head_dim). rstd[row] = 1 / sqrt(...), may be null. Source: Zhang & Sennrich 2019; HF
// LlamaRMSNorm.
LF_API void rms_norm_forward(Mat x, const float* weight, float eps, int64_t cols, MatOut y,
                             float* rstd, int64_t r0, int64_t r1) noexcept;
// dx = d_residual + gradient through the norm (d_residual.data may be null: nothing is added; it
// may be the same memory as dx). d_weight_blocks: null, or one row of `cols` per kTokenBlock rows
// of x, written. REQUIRES r0 % kTokenBlock == 0 when d_weight_blocks is not null.
LF_API void rms_norm_backward(Mat dy, Mat x, const float* weight, const float* rstd, int64_t cols,
                              Mat d_residual, MatOut dx, float* d_weight_blocks, int64_t r0,
                              int64_t r1) noexcept;
// out[j] (+)= sum over blocks b, in order, of blocks[b * cols + j].
LF_API void sum_blocks(const float* blocks, int64_t n_blocks, int64_t cols, float* out,
                       bool accumulate, int64_t c0, int64_t c1) noexcept;

// out = silu(gate) * up. REQUIRES gate.elem == up.elem, d_gate.elem == d_up.elem; gradients of the
// same elem may stand over gate and up.
LF_API void swiglu_forward(Mat gate, Mat up, int64_t cols, MatOut out, int64_t r0,
                           int64_t r1) noexcept;
LF_API void swiglu_backward(Mat d_out, Mat gate, Mat up, int64_t cols, MatOut d_gate, MatOut d_up,
                            int64_t r0, int64_t r1) noexcept;

// Rotary embedding, HF layout (first half / second half), in place allowed. cos, sin:
// [positions][head_dim / 2]. x: heads side by side. inverse: rotates back (the backward).
LF_API void rope(Mat x, MatOut y, int64_t heads, int64_t head_dim, const int32_t* positions,
                 const float* cos, const float* sin, bool inverse, int64_t r0, int64_t r1) noexcept;

// y = a + b (b.data may be null: a copy or cast).
LF_API void add(Mat a, Mat b, int64_t cols, MatOut y, int64_t r0, int64_t r1) noexcept;
// out = mask bit ? x * scale : 0; mask: one bit per element, row stride mask_ld bytes, bit j % 8 of
// byte j / 8.
LF_API void apply_mask(Mat x, const uint8_t* mask, int64_t mask_ld, float scale, int64_t cols,
                       MatOut out, int64_t r0, int64_t r1) noexcept;

// Softmax cross-entropy of fp32 logits rows [r0, r1), V columns. targets[row] < 0: the row is not
// trained on. loss[row] = lse - logit[target] (0 where not trained on). When d_logits.data is not
// null: d_logits = (softmax - onehot(target)), rows not trained on are zero; it may be the same
// memory as logits (kF32, or kBf16 written over the front of each fp32 row with ld in its own
// elements). REQUIRES targets[row] < vocab. The sum of exponentials runs in 16 fp32 lanes within
// 512 columns, those in 16 double lanes.
LF_API void softmax_xent(const float* logits, int64_t ld, int64_t vocab, const int32_t* targets,
                         float* loss, MatOut d_logits, int64_t r0, int64_t r1) noexcept;
// The first of equal values; NaN never wins.
LF_API int64_t argmax(const float* row, int64_t n) noexcept;

}  // namespace loongforge::kernels
