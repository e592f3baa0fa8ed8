// gemm of the AVX-512 ISA.
#include "kernels/generic/gemm.h"

#include "kernels/avx512/few.h"
#include "kernels/avx512/tile.h"
#include "kernels/avx512/vec.h"
#include "kernels/avx512/weights.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/generic/weight_rows.h"

namespace loongforge::kernels::avx512 {
namespace {

struct IsaAvx512 {
  using V = avx512::V;
  // A panel of B takes 256 KiB: a part of L2 that leaves room for A.
  static constexpr int64_t a_bytes = 2 << 20;
  template <class Tile>
  static constexpr int64_t k_block = 4096 / sizeof(typename Tile::Operand);

  // 32 KiB.
  template <class Tile>
  static constexpr int64_t short_k_block = 512 / sizeof(typename Tile::Operand);

  static constexpr int64_t few_rows = kFewRows;
  template <class Tile>
  static bool fuses(const GemmTerm& term) {
    return Tile::kRounds && term.b_kind == GemmTerm::B::kWeightT && term.w->elem != Elem::kF32;
  }
  template <class Tile>
  static void mul_few(int rows, const GemmTerm& term, int64_t j0, int64_t k0, int64_t k,
                      const typename Tile::Operand* a, float* c, int64_t ldc, bool accumulate) {
    if constexpr (Tile::kRounds)
      few_of_weight_t<Tile>(rows, *term.w, j0, k0, k, a, c, ldc, accumulate);
  }

  template <class Tile>
  static const typename Tile::Operand* direct_panel(const GemmTerm& term, int64_t j0, int64_t k0) {
    if (term.b_kind != GemmTerm::B::kWeightT) return nullptr;
    constexpr bool kPairs = sizeof(typename Tile::Operand) == 2;
    if (term.w->elem != (kPairs ? Elem::kBf16 : Elem::kF32) || (Tile::kRounds && !kPairs))
      return nullptr;
    const auto* data = reinterpret_cast<const typename Tile::Operand*>(term.w->data);
    return data + j0 * padded(term.w->k) + k0 * 64;
  }

  template <class Tile>
  static void make_panel(const GemmTerm& term, int64_t n, int64_t j0, int64_t k0, int64_t k,
                         typename Tile::Operand* dst) {
    const Mat& b = term.b;
    const int cols = static_cast<int>(at_most(Tile::kNr, n - j0));
    switch (term.b_kind) {
      case GemmTerm::B::kWeightT:
        return panel_of_weight_t<Tile>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kWeight:
        return panel_of_weight<Tile>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kPlain:
        if (b.elem == Elem::kF32)
          return Tile::pack_b(static_cast<const float*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        if (b.elem == Elem::kBf16)
          return Tile::pack_b(static_cast<const Bf16*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        return panel_of_fp8<Tile>(b, j0, cols, k0, k, dst);
      case GemmTerm::B::kPlainT:
        if (b.elem == Elem::kF32)
          return Tile::pack_b_t(static_cast<const float*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                                dst);
        return Tile::pack_b_t(static_cast<const Bf16*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                              dst);
    }
  }
};

struct Layout {
  static constexpr int64_t kPanel = 64;
  static int64_t padded(int64_t k) { return avx512::padded(k); }
  static int64_t row_offset(Elem elem, int64_t k_padded, int64_t row) {
    return kernels::avx512::row_offset(elem, k_padded, row);
  }
  static int64_t col_offset(Elem elem, int64_t col) {
    return kernels::avx512::col_offset(elem, col);
  }
};

size_t scratch_bytes() noexcept {
  const size_t dot = GemmPiece<IsaAvx512, TileBf16>::scratch_bytes();
  const size_t fma = GemmPiece<IsaAvx512, TileF32>::scratch_bytes();
  return dot > fma ? dot : fma;
}

void steps(Precision, int64_t* m_step, int64_t* n_step) noexcept {
  *m_step = TileF32::kMr;
  *n_step = TileF32::kNr;
}

template <class Bf16Tile>
void gemm_with(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
               void* scratch) noexcept {
  if (job.precision == Precision::kBf16) {
    gemm_piece<IsaAvx512, Bf16Tile>(job, m0, m1, n0, n1, scratch);
  } else {
    gemm_piece<IsaAvx512, TileF32>(job, m0, m1, n0, n1, scratch);
  }
}

void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
          void* scratch) noexcept {
  if (dot_is_fast()) {
    gemm_with<TileBf16>(job, m0, m1, n0, n1, scratch);
  } else {
    gemm_with<TileBf16Fma>(job, m0, m1, n0, n1, scratch);
  }
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

#define LF_GEMM_TABLE(gemm)                                                                 \
  {                                                                                         \
    packed_bytes<Layout>, pack_rows<Layout>, pack_nf4<Layout::kPanel>, gather_rows<Layout>, \
        scratch_bytes, steps, gemm                                                          \
  }
extern const GemmTable kGemmTable = LF_GEMM_TABLE(gemm);
// Both ways, for tests and benchmarks.
extern const GemmTable kGemmDotTable = LF_GEMM_TABLE(gemm_with<TileBf16>);
extern const GemmTable kGemmFmaTable = LF_GEMM_TABLE(gemm_with<TileBf16Fma>);

}  // namespace loongforge::kernels::avx512
