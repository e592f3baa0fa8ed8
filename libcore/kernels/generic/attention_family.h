// The functions of an ISA's AttentionTable, by precision.
//
// Tiles: what an ISA chooses, none of it deciding results: V, TileBf16, TileF32, kStrips (strips of
// a block of rows in forward), kQueries and kKeys (the block of scores in backward).
#pragma once

#include "kernels/generic/attention.h"
#include "kernels/generic/attention_backward.h"
#include "kernels/generic/attention_forward.h"

namespace loongforge::kernels {
namespace {

template <class Tiles>
struct AttentionFamily {
  using V = typename Tiles::V;
  using TileF32 = typename Tiles::TileF32;
  using ForwardBf16 = AttnForward<V, typename Tiles::TileBf16, true, Tiles::kStrips>;
  using ForwardF32 = AttnForward<V, TileF32, false, Tiles::kStrips>;
  using BackwardBf16 =
      AttnBackward<V, typename Tiles::TileBf16, TileF32, true, Tiles::kQueries, Tiles::kKeys>;
  using BackwardF32 = AttnBackward<V, TileF32, TileF32, false, Tiles::kQueries, Tiles::kKeys>;

  static size_t scratch_bytes(const AttnJob& job, int64_t max_kv_len, bool backward) noexcept {
    const bool bf16 = job.precision == Precision::kBf16;
    if (backward)
      return bf16 ? BackwardBf16::scratch_bytes(job, max_kv_len)
                  : BackwardF32::scratch_bytes(job, max_kv_len);
    return bf16 ? ForwardBf16::scratch_bytes(job, max_kv_len)
                : ForwardF32::scratch_bytes(job, max_kv_len);
  }
  static void forward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0,
                      int64_t q1, void* scratch) noexcept {
    if (job.precision == Precision::kBf16) {
      ForwardBf16::run(job, doc, kv_head, q0, q1, scratch);
    } else {
      ForwardF32::run(job, doc, kv_head, q0, q1, scratch);
    }
  }
  static void backward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0,
                       int64_t q1, int64_t k0, int64_t k1, bool want_q, bool want_kv,
                       void* scratch) noexcept {
    const BackwardPart part{q0, q1, k0, k1, want_q, want_kv};
    if (job.precision == Precision::kBf16) {
      BackwardBf16::run(job, doc, kv_head, part, scratch);
    } else {
      BackwardF32::run(job, doc, kv_head, part, scratch);
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels
