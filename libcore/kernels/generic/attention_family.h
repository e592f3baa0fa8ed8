// The functions of an ISA's AttentionTable, by precision.
//
// Isa: what an ISA chooses, none of it deciding results: V, TileBf16 and TileF32 (packing),
// Strided<Operand, kRounds> (the products), kStrips (strips of a block of rows in forward),
// kQueries and kKeys (the block of scores in backward).
#pragma once

#include "kernels/generic/attention.h"
#include "kernels/generic/attention_backward.h"
#include "kernels/generic/attention_forward.h"
#include "kernels/generic/panel_tile.h"

namespace loongforge::kernels {
namespace {

// The Isa of an ISA whose operands are fp32: from its Ops (tile.md).
template <class Ops>
struct PanelAttention {
  using V = typename Ops::V;
  using TileBf16 = PanelTile<Ops, true>;
  using TileF32 = PanelTile<Ops, false>;
  template <class Operand, bool kRounds>
  using Strided = PanelStrided<Ops, kRounds>;
  static constexpr int kStrips = Ops::kStrips, kQueries = Ops::kQueries, kKeys = Ops::kKeys;
};

template <class Isa>
struct AttentionFamily {
  using V = typename Isa::V;
  using TileBf16 = typename Isa::TileBf16;
  using TileF32 = typename Isa::TileF32;
  using StridedBf16 = typename Isa::template Strided<typename TileBf16::Operand, true>;
  using StridedF32 = typename Isa::template Strided<float, false>;
  using ForwardBf16 = attn::Forward<V, TileBf16, StridedBf16, true, Isa::kStrips>;
  using ForwardF32 = attn::Forward<V, TileF32, StridedF32, false, Isa::kStrips>;
  using BackwardBf16 =
      attn::Backward<V, TileBf16, StridedBf16, TileF32, true, Isa::kQueries, Isa::kKeys>;
  using BackwardF32 =
      attn::Backward<V, TileF32, StridedF32, TileF32, false, Isa::kQueries, Isa::kKeys>;

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
    const attn::BackwardPart part{q0, q1, k0, k1, want_q, want_kv};
    if (job.precision == Precision::kBf16) {
      BackwardBf16::run(job, doc, kv_head, part, scratch);
    } else {
      BackwardF32::run(job, doc, kv_head, part, scratch);
    }
  }

  static constexpr AttentionTable table() { return {scratch_bytes, forward, backward}; }
};

}  // namespace
}  // namespace loongforge::kernels
