// gemm of the AVX-512 ISA: two forms with the same results; the CPU decides which is faster.
#include "kernels/avx512/ops.h"
#include "kernels/generic/gemm_family.h"
#include "kernels/generic/pair_weights.h"

namespace loongforge::kernels::avx512 {
namespace {

using Dot = GemmFamily<Ops, PairWeights<Ops>, TileBf16, TileF32>;
using Fma = GemmFamily<Ops, PairWeights<Ops>, TileBf16Fma, TileF32>;

void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
          void* scratch) noexcept {
  (dot_is_fast() ? Dot::gemm : Fma::gemm)(job, m0, m1, n0, n1, scratch);
}

constexpr GemmTable chosen() {
  GemmTable table = Fma::table();
  table.gemm = gemm;
  return table;
}

#ifndef LF_EMULATE_AVX512
// Time stamp ticks of `rounds` times 24 independent instructions, the best of a few tries.
#define LF_24(op)                                                                               \
  op("0") op("1") op("2") op("3") op("4") op("5") op("6") op("7") op("8") op("9") op("10")      \
      op("11") op("12") op("13") op("14") op("15") op("16") op("17") op("18") op("19") op("20") \
          op("21") op("22") op("23")
#define LF_TICKS(name, op)                                                                        \
  uint64_t name() {                                                                               \
    uint64_t best = ~uint64_t{0};                                                                 \
    for (int i = 0; i < 6; ++i) {                                                                 \
      int rounds = 200;                                                                           \
      const uint64_t start = __builtin_ia32_rdtsc();                                              \
      __asm__ volatile("1:\n" LF_24(op) "dec %0\njnz 1b"                                          \
                       : "+r"(rounds)                                                             \
                       :                                                                          \
                       : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",    \
                         "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",    \
                         "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23"); \
      const uint64_t ticks = __builtin_ia32_rdtsc() - start;                                      \
      if (ticks < best) best = ticks;                                                             \
    }                                                                                             \
    return best;                                                                                  \
  }
#define LF_DOT(i) "vdpbf16ps %%zmm30, %%zmm31, %%zmm" i "\n"
#define LF_FMA(i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" i "\n"
LF_TICKS(dot_ticks, LF_DOT)
LF_TICKS(fma_ticks, LF_FMA)
#endif

bool measure_dot() noexcept {
#ifdef LF_EMULATE_AVX512
  return false;
#else
  // One vdpbf16ps does the work of two FMA.
  return dot_ticks() * 10 <= fma_ticks() * 21;
#endif
}

}  // namespace

bool dot_is_fast() noexcept {
  static const bool fast = measure_dot();
  return fast;
}

extern const GemmTable kGemmTable = chosen();
// Both ways, for tests and benchmarks.
extern const GemmTable kGemmDotTable = Dot::table();
extern const GemmTable kGemmFmaTable = Fma::table();

}  // namespace loongforge::kernels::avx512
