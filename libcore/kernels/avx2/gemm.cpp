// gemm of the AVX2 ISA.
#include "kernels/generic/gemm.h"

#include "kernels/avx2/few.h"
#include "kernels/avx2/tile.h"
#include "kernels/avx2/vec.h"
#include "kernels/avx2/weights.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/generic/weight_rows.h"

namespace loongforge::kernels::avx2 {
namespace {

struct IsaAvx2 {
  using V = avx2::V;
  // A panel of B takes 24 KiB of the first cache, A is kept within the second.
  static constexpr int64_t a_bytes = 512 << 10;
  template <class Tile>
  static constexpr int64_t k_block = 384;

  template <class Tile>
  static constexpr int64_t short_k_block = 256;

  static constexpr int64_t few_rows = kFewRows;
  template <class Tile>
  static bool fuses(const GemmTerm& term) {
    return Tile::kRounds && term.b_kind == GemmTerm::B::kWeightT && term.w->elem != Elem::kF32;
  }
  template <class Tile>
  static void mul_few(int rows, const GemmTerm& term, int64_t j0, int64_t k0, int64_t k,
                      const float* a, float* c, int64_t ldc, bool accumulate) {
    few_of_weight_t<Tile>(rows, *term.w, j0, k0, k, a, c, ldc, accumulate);
  }

  template <class Tile>
  static const float* direct_panel(const GemmTerm& term, int64_t j0, int64_t k0) {
    if (term.b_kind != GemmTerm::B::kWeightT || term.w->elem != Elem::kF32 || Tile::kRounds)
      return nullptr;
    return reinterpret_cast<const float*>(term.w->data) + j0 * padded(term.w->k) + k0 * 16;
  }

  template <class Tile>
  static void make_panel(const GemmTerm& term, int64_t n, int64_t j0, int64_t k0, int64_t k,
                         float* dst) {
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
  static constexpr int64_t kPanel = 16;
  static int64_t padded(int64_t k) { return avx2::padded(k); }
  static int64_t row_offset(Elem, int64_t k_padded, int64_t row) {
    return row / 16 * 16 * k_padded + row % 16;
  }
  static int64_t col_offset(Elem, int64_t col) { return (col ^ 1) * 16; }
};

size_t scratch_bytes() noexcept { return GemmPiece<IsaAvx2, TileF32>::scratch_bytes(); }

void steps(Precision, int64_t* m_step, int64_t* n_step) noexcept {
  *m_step = TileF32::kMr;
  *n_step = TileF32::kNr;
}

void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
          void* scratch) noexcept {
  if (job.precision == Precision::kBf16) {
    gemm_piece<IsaAvx2, TileBf16>(job, m0, m1, n0, n1, scratch);
  } else {
    gemm_piece<IsaAvx2, TileF32>(job, m0, m1, n0, n1, scratch);
  }
}

}  // namespace

extern const GemmTable kGemmTable = {packed_bytes<Layout>,
                                     pack_rows<Layout>,
                                     pack_nf4<Layout::kPanel>,
                                     gather_rows<Layout>,
                                     scratch_bytes,
                                     steps,
                                     gemm};

}  // namespace loongforge::kernels::avx2
