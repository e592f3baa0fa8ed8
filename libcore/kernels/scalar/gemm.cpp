// gemm of the scalar ISA. Packed weights are row-major, without padding but NF4's blocks.
#include "kernels/generic/gemm.h"

#include "kernels/generic/fp8_bits.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/generic/weight_rows.h"
#include "kernels/scalar/tile.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {
namespace {

float fp8_value(const uint16_t* images, uint8_t code, int exp, bool flushed) {
  return bf16_value(
      static_cast<uint16_t>(scale_image(images[code & 0x7F], exp, flushed) | (code & 0x80) << 8));
}

int weight_exp(const PackedWeight& w, int64_t row, int64_t col) {
  return w.scale_exps[row / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                      col / kWeightBlock];
}

template <bool kRound>
float weight_value(const PackedWeight& w, int64_t row, int64_t col) {
  const int64_t i = row * w.k + col;
  float x;
  if (w.elem == Elem::kNf4) {
    set_operand<kRound>(&x, nf4_value<1>(nf4_block<1>(w, row, col), 0, col % kNf4Block));
  } else if (w.elem == Elem::kF32) {
    set_operand<kRound>(&x, reinterpret_cast<const float*>(w.data)[i]);
  } else if (w.elem == Elem::kBf16) {
    set_operand<kRound>(&x, reinterpret_cast<const Bf16*>(w.data)[i]);
  } else {
    x = fp8_value(fp8_images(w.elem), w.data[i], weight_exp(w, row, col), kRound);
  }
  return x;
}

struct IsaScalar {
  using V = scalar::V;
  static constexpr int64_t a_bytes = 1 << 20;
  template <class Tile>
  static constexpr int64_t k_block = 512;

  template <class Tile>
  static constexpr int64_t short_k_block = 512;

  static constexpr int64_t few_rows = 0;
  template <class Tile>
  static bool fuses(const GemmTerm&) {
    return false;
  }
  template <class Tile>
  static void mul_few(int, const GemmTerm&, int64_t, int64_t, int64_t, const float*, float*,
                      int64_t, bool) {}

  template <class Tile>
  static const float* direct_panel(const GemmTerm&, int64_t, int64_t) {
    return nullptr;
  }

  template <class Tile>
  static void make_panel(const GemmTerm& term, int64_t n, int64_t j0, int64_t k0, int64_t k,
                         float* dst) {
    const int cols = static_cast<int>(at_most(Tile::kNr, n - j0));
    const Mat& b = term.b;
    const auto pack = [&]<class T>(const T* src) {
      if (term.b_kind == GemmTerm::B::kPlain) {
        Tile::pack_b(src + k0 * b.ld + j0, b.ld, cols, k, dst);
      } else {
        Tile::pack_b_t(src + j0 * b.ld + k0, b.ld, cols, k, dst);
      }
    };
    const bool plain = term.b_kind == GemmTerm::B::kPlain || term.b_kind == GemmTerm::B::kPlainT;
    if (plain && b.elem == Elem::kF32) return pack(static_cast<const float*>(b.data));
    if (plain && b.elem == Elem::kBf16) return pack(static_cast<const Bf16*>(b.data));
    constexpr bool kRound = Tile::kRounds;
    memset(dst, 0, sizeof(float) * Tile::b_panel_elems(k));
    for (int64_t kk = 0; kk < k; ++kk) {
      float* row = dst + panel_index<Tile::kNr>(dst, 0, kk);
      for (int j = 0; j < cols; ++j) {
        if (term.b_kind == GemmTerm::B::kWeightT) {
          row[j] = weight_value<kRound>(*term.w, j0 + j, k0 + kk);
        } else if (term.b_kind == GemmTerm::B::kWeight) {
          row[j] = weight_value<kRound>(*term.w, k0 + kk, j0 + j);
        } else {
          const uint8_t code = static_cast<const uint8_t*>(b.data)[(k0 + kk) * b.ld + j0 + j];
          row[j] = fp8_value(fp8_images(b.elem), code,
                             b.exps[(k0 + kk) * b.ld_exps + (j0 + j) / kFeatureBlock], kRound);
        }
      }
    }
  }
};

struct Layout {
  static constexpr int64_t kPanel = 1;
  static int64_t padded(int64_t k) { return k; }
  static int64_t row_offset(Elem, int64_t k_padded, int64_t row) { return row * k_padded; }
  static int64_t col_offset(Elem, int64_t col) { return col; }
};

size_t scratch_bytes() noexcept { return GemmPiece<IsaScalar, TileF32>::scratch_bytes(); }

void steps(Precision, int64_t* m_step, int64_t* n_step) noexcept {
  *m_step = TileF32::kMr;
  *n_step = TileF32::kNr;
}

void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
          void* scratch) noexcept {
  if (job.precision == Precision::kBf16) {
    gemm_piece<IsaScalar, TileBf16>(job, m0, m1, n0, n1, scratch);
  } else {
    gemm_piece<IsaScalar, TileF32>(job, m0, m1, n0, n1, scratch);
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

}  // namespace loongforge::kernels::scalar
