// What gemm.h asks of an Isa, from its Ops and how its packed weights become panels.
#pragma once

#include "kernels/generic/gemm.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/generic/narrow.h"
#include "kernels/generic/nf4.h"
#include "kernels/generic/weight_rows.h"

namespace loongforge::kernels {
namespace {

inline constexpr int kFewRows = 4;  // so few are multiplied by what is decoded in registers

// Weights: PanelWeights or PairWeights.
template <class Ops, class Weights>
struct GemmIsa {
  using V = typename Ops::V;
  static constexpr int64_t a_bytes = Ops::kABytes;
  template <class Tile>
  static constexpr int64_t k_block =
      Ops::kKBlock* static_cast<int64_t>(sizeof(float) / sizeof(typename Tile::Operand));
  template <class Tile>
  static constexpr int64_t short_k_block =
      Ops::kShortKBlock* static_cast<int64_t>(sizeof(float) / sizeof(typename Tile::Operand));

  static constexpr int64_t few_rows = kFewRows, wide_rows = Weights::kWideRows;
  template <class Tile>
  static bool fuses(const GemmTerm& term) {
    return Tile::kRounds && term.b_kind == GemmTerm::B::kWeightT && term.w->elem != Elem::kF32;
  }
  template <class Tile>
  static void mul_few(int rows, bool wide, const GemmTerm& term, int64_t j0, int64_t k0, int64_t k,
                      const typename Tile::Operand* a, float* c, int64_t ldc, bool accumulate) {
    if constexpr (Tile::kRounds)
      Weights::template few_of_weight_t<Tile>(rows, wide, *term.w, j0, k0, k, a, c, ldc,
                                              accumulate);
  }

  template <class Tile>
  static const typename Tile::Operand* direct_panel(const GemmTerm& term, int64_t j0, int64_t k0) {
    return term.b_kind == GemmTerm::B::kWeightT
               ? Weights::template direct_panel<Tile>(*term.w, j0, k0)
               : nullptr;
  }

  // In a weight, whose blocks are contiguous: the lines of a panel are asked for in equal parts.
  template <class Tile>
  static Ahead ask_ahead(const GemmTerm& term, int64_t j0, int64_t k0, int64_t k, int64_t part,
                         int64_t parts, int64_t pairs) {
    constexpr int64_t kPanel = Ops::kNr;
    if (term.b_kind == GemmTerm::B::kWeightT) {
      const PackedWeight& w = *term.w;
      const bool nf4 = w.elem == Elem::kNf4;
      const uint8_t* p =
          nf4 ? nf4_block<kPanel>(w, j0, k0)
              : w.data + (j0 * Weights::padded(w.k) + k0 * kPanel) * elem_bytes(w.elem);
      const int64_t bytes = nf4 ? (k + kNf4Block - 1) / kNf4Block * kNf4BlockBytes<kPanel>
                                : k * kPanel * elem_bytes(w.elem);
      return {p + bytes * part / parts, bytes / (parts * pairs)};
    }
    if (term.b_kind == GemmTerm::B::kWeight) ask_rows(*term.w, j0, k0, k, part, parts);
    return {};
  }
  // W: pieces of a panel's width, far apart.
  static void ask_rows(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n, int64_t part,
                       int64_t parts) {
    constexpr int64_t kPanel = Ops::kNr;
    const bool nf4 = w.elem == Elem::kNf4;
    const int64_t row = nf4 ? 0 : Weights::padded(w.k) * elem_bytes(w.elem);
    const uint8_t* first =
        nf4 ? nf4_block<kPanel>(w, n0, j0) : w.data + n0 * row + j0 * kPanel * elem_bytes(w.elem);
    const int64_t lines =
        (nf4 ? kNf4BlockBytes<kPanel> : kPanel * kPanel * elem_bytes(w.elem)) / 64;
    const int64_t step = nf4 ? nf4_panel_bytes<kPanel>(w.k) : kPanel * row;
    const int64_t all = (n + kPanel - 1) / kPanel * lines;
    for (int64_t i = part * all / parts; i < (part + 1) * all / parts; ++i)
      __builtin_prefetch(first + i / lines * step + i % lines * 64, 0, 2);
  }

  template <class Tile>
  static void make_panel(const GemmTerm& term, int64_t n, int64_t j0, int64_t k0, int64_t k,
                         typename Tile::Operand* dst) {
    const Mat& b = term.b;
    const int cols = static_cast<int>(at_most(Tile::kNr, n - j0));
    switch (term.b_kind) {
      case GemmTerm::B::kWeightT:
        return Weights::template panel_of_weight_t<Tile>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kWeight:
        return Weights::template panel_of_weight<Tile>(*term.w, j0, k0, k, dst);
      case GemmTerm::B::kPlain:
        if (b.elem == Elem::kF32)
          return Tile::pack_b(static_cast<const float*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        if (b.elem == Elem::kBf16)
          return Tile::pack_b(static_cast<const Bf16*>(b.data) + k0 * b.ld + j0, b.ld, cols, k,
                              dst);
        return Weights::template panel_of_fp8<Tile>(b, j0, cols, k0, k, dst);
      case GemmTerm::B::kPlainT:
        if (b.elem == Elem::kF32)
          return Tile::pack_b_t(static_cast<const float*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                                dst);
        return Tile::pack_b_t(static_cast<const Bf16*>(b.data) + j0 * b.ld + k0, b.ld, cols, k,
                              dst);
    }
  }
};

// The table of an ISA whose tiles for Precision::kBf16 and kF32 are these.
template <class Ops, class Weights, class TileBf16, class TileF32>
struct GemmFamily {
  using Isa = GemmIsa<Ops, Weights>;

  // How packed weights stand: see weight_rows.h.
  struct Layout {
    static constexpr int64_t kPanel = Ops::kNr;
    static int64_t padded(int64_t k) { return Weights::padded(k); }
    static int64_t row_offset(Elem elem, int64_t k_padded, int64_t row) {
      return Weights::row_offset(elem, k_padded, row);
    }
    static int64_t col_offset(Elem elem, int64_t col) { return Weights::col_offset(elem, col); }
  };

  static size_t scratch_bytes() noexcept {
    const size_t bf16 = GemmPiece<Isa, TileBf16>::scratch_bytes();
    const size_t f32 = GemmPiece<Isa, TileF32>::scratch_bytes();
    return bf16 > f32 ? bf16 : f32;
  }

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
