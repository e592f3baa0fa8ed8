// gemm's table for an ISA whose operands are fp32, from its Ops (generic/tile.md).
#pragma once

#include "kernels/generic/gemm.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/generic/panel_tile.h"
#include "kernels/generic/panel_weights.h"
#include "kernels/generic/weight_rows.h"

namespace loongforge::kernels {
namespace {

// What gemm.h asks of an Isa.
template <class Ops>
struct PanelIsa {
  using V = typename Ops::V;
  using Weights = PanelWeights<Ops>;
  static constexpr int64_t a_bytes = Ops::kABytes;
  template <class Tile>
  static constexpr int64_t k_block = Ops::kKBlock;
  template <class Tile>
  static constexpr int64_t short_k_block = Ops::kShortKBlock;

  static constexpr int64_t few_rows = kFewRows;
  template <class Tile>
  static bool fuses(const GemmTerm& term) {
    return Tile::kRounds && term.b_kind == GemmTerm::B::kWeightT && term.w->elem != Elem::kF32;
  }
  template <class Tile>
  static void mul_few(int rows, const GemmTerm& term, int64_t j0, int64_t k0, int64_t k,
                      const float* a, float* c, int64_t ldc, bool accumulate) {
    Weights::template few_of_weight_t<Tile>(rows, *term.w, j0, k0, k, a, c, ldc, accumulate);
  }

  template <class Tile>
  static const float* direct_panel(const GemmTerm& term, int64_t j0, int64_t k0) {
    if (term.b_kind != GemmTerm::B::kWeightT || term.w->elem != Elem::kF32 || Tile::kRounds)
      return nullptr;
    return reinterpret_cast<const float*>(term.w->data) + Weights::panel_at(*term.w, j0, k0);
  }

  template <class Tile>
  static void make_panel(const GemmTerm& term, int64_t n, int64_t j0, int64_t k0, int64_t k,
                         float* dst) {
    const Mat& b = term.b;
    const int cols = static_cast<int>(at_most(Tile::kNr, n - j0));
    switch (term.b_kind) {
      case GemmTerm::B::kWeightT:
        return Weights::template panel_of_weight_t<Tile::kRounds>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kWeight:
        return Weights::template panel_of_weight<Tile::kRounds>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kPlain:
        if (b.elem == Elem::kF32)
          return Tile::pack_b(static_cast<const float*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        if (b.elem == Elem::kBf16)
          return Tile::pack_b(static_cast<const Bf16*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        return Weights::template panel_of_fp8<Tile::kRounds>(b, j0, cols, k0, k, dst);
      case GemmTerm::B::kPlainT:
        if (b.elem == Elem::kF32)
          return Tile::pack_b_t(static_cast<const float*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                                dst);
        return Tile::pack_b_t(static_cast<const Bf16*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                              dst);
    }
  }
};

template <class Ops>
struct PanelGemm {
  using Isa = PanelIsa<Ops>;
  using TileBf16 = PanelTile<Ops, true>;
  using TileF32 = PanelTile<Ops, false>;

  // How packed weights stand: see weight_rows.h.
  struct Layout {
    static constexpr int64_t kPanel = Ops::kNr;
    static int64_t padded(int64_t k) { return PanelWeights<Ops>::padded(k); }
    static int64_t row_offset(Elem, int64_t k_padded, int64_t row) {
      return row / kPanel * kPanel * k_padded + row % kPanel;
    }
    static int64_t col_offset(Elem, int64_t col) { return (col ^ 1) * kPanel; }
  };

  static size_t scratch_bytes() noexcept { return GemmPiece<Isa, TileF32>::scratch_bytes(); }

  static void steps(Precision, int64_t* m_step, int64_t* n_step) noexcept {
    *m_step = Ops::kMr;
    *n_step = Ops::kNr;
  }

  static void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                   void* scratch) noexcept {
    if (job.precision == Precision::kBf16) {
      gemm_piece<Isa, TileBf16>(job, m0, m1, n0, n1, scratch);
    } else {
      gemm_piece<Isa, TileF32>(job, m0, m1, n0, n1, scratch);
    }
  }

  static constexpr GemmTable table() {
    return {packed_bytes<Layout>,
            pack_rows<Layout>,
            pack_nf4<Layout::kPanel>,
            gather_rows<Layout>,
            scratch_bytes,
            steps,
            gemm};
  }
};

}  // namespace
}  // namespace loongforge::kernels
