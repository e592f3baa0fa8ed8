#include "kernels/avx512/ops.h"
#include "kernels/generic/attention_family.h"

namespace loongforge::kernels::avx512 {
namespace {

template <class Bf16Tile>
struct Choice {
  using V = avx512::V;
  using TileBf16 = Bf16Tile;
  using TileF32 = avx512::TileF32;
  template <class Operand, bool kRounds>
  using Strided = PairStrided<Ops, typename StepOf<Operand>::Step, Operand>;
  // Keys and values of long documents come from the third cache: blocks of many rows read them
  // less.
  static constexpr int kStrips = 16;
  static constexpr int kQueries = 192;
  static constexpr int kKeys = 128;
};
// Two forms of the bf16 products with the same results; the CPU decides which is faster.
using Dot = AttentionFamily<Choice<TileBf16>>;
using Fma = AttentionFamily<Choice<TileBf16Fma>>;

constexpr AttentionTable kDot = {Dot::scratch_bytes, Dot::forward, Dot::backward};
constexpr AttentionTable kFma = {Fma::scratch_bytes, Fma::forward, Fma::backward};
const AttentionTable& chosen() noexcept { return dot_is_fast() ? kDot : kFma; }

size_t scratch_bytes(const AttnJob& job, int64_t max_kv_len, bool backward) noexcept {
  return chosen().scratch_bytes(job, max_kv_len, backward);
}
void forward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0, int64_t q1,
             void* scratch) noexcept {
  chosen().forward(job, doc, kv_head, q0, q1, scratch);
}
void backward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0, int64_t q1,
              int64_t k0, int64_t k1, bool want_q, bool want_kv, void* scratch) noexcept {
  chosen().backward(job, doc, kv_head, q0, q1, k0, k1, want_q, want_kv, scratch);
}

}  // namespace

extern const AttentionTable kAttentionTable = {scratch_bytes, forward, backward};
// For tests: both forms, whatever this CPU prefers.
extern const AttentionTable kAttentionForms[2] = {kDot, kFma};

}  // namespace loongforge::kernels::avx512
