// Causal attention without the S x S matrix, forward and backward, GQA, ragged (packed) batches, KV
// cache.
//
// Source: online softmax in key blocks (FlashAttention-2). Key blocks of kAttnKeyBlock keys are
// counted from the document's first key, so a document has the same bits alone, packed, batched, or
// generated token by token with a KV cache. Operands of the products are bf16 (Precision::kBf16: q,
// k, v, dO, and P and dS as they become operands) or fp32; sums, softmax and LSE are fp32. Scores
// are scaled in fp32 after the product; in backward the scale enters last, on the sums of dQ and
// dK. The softmax denominator sums P before rounding. kF32 precision takes all values as they are.
// Bit-equal for every ISA and every split into calls, as long as inputs are finite (a masked NaN
// may or may not reach a neighbouring row). Thread-safety: pure functions; disjoint ranges may run
// in parallel, each with its own scratch.
#pragma once

#include <stddef.h>

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// One document. Query i (0 <= i < q_len) attends keys [max(0, p - window + 1), p], p = kv_len -
// q_len + i. Training: q_len == kv_len. Generation: the kv_len cached keys end with the q_len new
// ones.
struct AttnDoc {
  int64_t q_row, q_len;    // first row in q, o, lse, dO, dQ
  int64_t kv_row, kv_len;  // first row in k, v, dK, dV
};

struct AttnJob {
  int64_t heads, kv_heads, head_dim;  // head_dim 8 .. 256, a multiple of 8; heads % kv_heads == 0
  float scale;                        // of the scores, > 0, usually 1/sqrt(head_dim)
  int64_t window;                     // 0: none
  Precision precision;
  // Rows are tokens; head h stands at columns [h * head_dim, (h + 1) * head_dim). kBf16 or kF32
  // elements.
  Mat q, k, v;
  MatOut o;
  float* lse;  // [heads][lse_ld]: log of the softmax denominator per head and query row
  int64_t lse_ld;
  // Backward only:
  Mat o_saved, d_o;
  MatOut dq, dk, dv;  // written (not added to)
};

LF_API size_t attention_scratch_bytes(const AttnJob& job, int64_t max_kv_len,
                                      bool backward) noexcept;  // per worker

// Query rows [q0, q1) of one document, all query heads that share kv_head. scratch is 64-byte
// aligned here and below. Every call packs the keys that it sees: ranges of some hundred rows cost
// little, and a single row takes the heads together.
LF_API void attention_forward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0,
                              int64_t q1, void* scratch) noexcept;
// dQ, dK, dV of one document and one kv head (all its query heads). REQUIRES q_len == kv_len.
LF_API void attention_backward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head,
                               void* scratch) noexcept;
// The same results in parts, for more threads than documents x kv heads: rows [q0, q1) of dQ, rows
// [k0, k1) of dK and dV. Together they cost 7 products where attention_backward costs 5.
LF_API void attention_backward_queries(const AttnJob& job, const AttnDoc& doc, int64_t kv_head,
                                       int64_t q0, int64_t q1, void* scratch) noexcept;
LF_API void attention_backward_keys(const AttnJob& job, const AttnDoc& doc, int64_t kv_head,
                                    int64_t k0, int64_t k1, void* scratch) noexcept;

}  // namespace loongforge::kernels
