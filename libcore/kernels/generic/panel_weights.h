// Packed weights of an ISA whose operands are fp32, and how B panels are made from them, and from
// plain matrices.
//
// A weight [n, k] is cut into panels of kNr n, padded with zeros to multiples of kNr in n and k; a
// panel is [k'][kNr n] with k' odd first, so that W^T reads rows of it in order, and W reads 16 x
// 16 blocks of it and transposes them. NF4: see nf4.h.
#pragma once

#include "kernels/gemm.h"
#include "kernels/generic/few.h"
#include "kernels/generic/panel_nf4.h"
#include "kernels/generic/panels.h"

namespace loongforge::kernels {
namespace {

// f(decoder of code * 2^exp). flushed: under 2^-55 becomes 0.
template <class Ops, class F>
LF_INLINE void with_decoder(Elem fp8, int exp, bool flushed, F f) {
  const bool small = flushed && exp < -39;  // the smallest code is 2^-16 (E5M2) or 2^-14
  const bool e4m3 = fp8 == Elem::kE4M3;
  if (e4m3 && !small) {
    f(typename Ops::template Fp8<true, false>(exp));
  } else if (e4m3) {
    f(typename Ops::template Fp8<true, true>(exp));
  } else if (!small) {
    f(typename Ops::template Fp8<false, false>(exp));
  } else {
    f(typename Ops::template Fp8<false, true>(exp));
  }
}

template <class Ops>
struct PanelWeights {
  using R = typename Ops::R;
  using V = typename Ops::V;
  using Codes = typename Ops::Codes;
  static constexpr int64_t kPanel = Ops::kNr;
  static_assert(kPanel % 16 == 0 && kNf4Block % kPanel == 0);

  static int64_t padded(int64_t x) { return (x + kPanel - 1) / kPanel * kPanel; }
  // Where rows k' = k0 .. of the panel of column n0 start, in elements.
  static int64_t panel_at(const PackedWeight& w, int64_t n0, int64_t k0) {
    return n0 * padded(w.k) + k0 * kPanel;
  }
  static int exp_of(const PackedWeight& w, int64_t row, int64_t col) {
    return w.scale_exps[row / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                        col / kWeightBlock];
  }

  static int64_t row_offset(Elem, int64_t k_padded, int64_t row) {
    return row / kPanel * kPanel * k_padded + row % kPanel;
  }
  static int64_t col_offset(Elem, int64_t col) { return (col ^ 1) * kPanel; }

  // The panel that already stands in the weight, or null.
  template <class Tile>
  static const float* direct_panel(const PackedWeight& w, int64_t n0, int64_t k0) {
    if (w.elem != Elem::kF32 || Tile::kRounds) return nullptr;
    return reinterpret_cast<const float*>(w.data) + panel_at(w, n0, k0);
  }

  // ---- W^T: columns n0 .. n0 + kPanel - 1, rows k0 .. k0 + k of the product's B. REQUIRES n0 %
  // kPanel == 0, k0 % 128 == 0.
  template <class Tile>
  static void panel_of_weight_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                                float* dst) {
    constexpr bool kRound = Tile::kRounds;
    if (w.elem == Elem::kNf4) return panel_of_nf4_t<Ops, kRound>(w, n0, k0, k, dst);
    const int64_t rows = (k + 1) / 2 * 2;
    const int64_t first = panel_at(w, n0, k0);
    if (w.elem == Elem::kF32) {
      const float* src = reinterpret_cast<const float*>(w.data) + first;
      for (int64_t i = 0; i < rows * kPanel; i += R::kLanes)
        as_operand<kRound>(src, R::load(src + i)).store(dst + i);
      return;
    }
    if (w.elem == Elem::kBf16) {
      const Bf16* src = reinterpret_cast<const Bf16*>(w.data) + first;
      for (int64_t i = 0; i < rows * kPanel; i += R::kLanes) R::load(src + i).store(dst + i);
      return;
    }
    for (int64_t r = 0; r < rows; r += kWeightBlock) {
      const int64_t count = (rows - r < kWeightBlock ? rows - r : kWeightBlock) * kPanel;
      const uint8_t* src = w.data + first + r * kPanel;
      float* out = dst + r * kPanel;
      with_decoder<Ops>(w.elem, exp_of(w, n0, k0 + r), kRound, [&](auto decode) {
        for (int64_t i = 0; i < count; i += 16) decode(Ops::load_codes(src + i)).store(out + i);
      });
    }
  }

  // ---- W: columns j0 .. j0 + kPanel - 1 (of k), rows n0 .. n0 + n. REQUIRES j0 % kPanel == 0, n0
  // % 128 == 0.
  template <class Tile>
  static void panel_of_weight(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n,
                              float* dst) {
    constexpr bool kRound = Tile::kRounds;
    if (w.elem == Elem::kNf4) return panel_of_nf4<Ops, kRound>(w, j0, n0, n, dst);
    const int64_t total = (n + 1) / 2 * 2;
    for (int64_t r = 0; r < total; r += 16, dst += 16 * kPanel) {
      const int64_t row = n0 + r;
      const int64_t rows = total - r < 16 ? total - r : 16;
      const int64_t first = panel_at(w, row / kPanel * kPanel, j0) + row % kPanel;
      if (row % kPanel == 0) ask_ahead(w, row, j0);
      for (int64_t j = 0; j < kPanel; j += 16) {
        const int64_t at = first + j * kPanel;
        if (w.elem == Elem::kF32) {
          transpose_values<kRound>(reinterpret_cast<const float*>(w.data) + at, rows, dst + j);
        } else if (w.elem == Elem::kBf16) {
          transpose_values<false>(reinterpret_cast<const Bf16*>(w.data) + at, rows, dst + j);
        } else {
          Codes codes[16];
          Ops::transpose_codes(w.data + at, kPanel, codes);
          with_decoder<Ops>(w.elem, exp_of(w, row, j0), kRound, [&](auto decode) {
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i)
              if (i < rows) decode(codes[i]).store(dst + (i ^ 1) * kPanel + j);
          });
        }
      }
    }
  }

  // ---- Plain FP8 with row-block exponents: rows k0 .. k0 + k of b, columns j0 .. j0 + kPanel - 1,
  // the first cols of them valid.
  template <class Tile>
  static void panel_of_fp8(const Mat& b, int64_t j0, int cols, int64_t k0, int64_t k, float* dst) {
    static_assert(kFeatureBlock % kPanel == 0);
    // One decoder for all rows: that of small values is slower, but right for any.
    int least = 0;
    const int8_t* exps = b.exps + k0 * b.ld_exps + j0 / kFeatureBlock;
    for (int64_t kk = 0; kk < k; ++kk)
      least = exps[kk * b.ld_exps] < least ? exps[kk * b.ld_exps] : least;
    const uint8_t* codes = static_cast<const uint8_t*>(b.data) + k0 * b.ld + j0;
    with_decoder<Ops>(b.elem, least, Tile::kRounds, [&]<class Decoder>(Decoder) {
      for (int64_t kk = 0; kk < k; ++kk, codes += b.ld)
        fp8_row(Decoder(exps[kk * b.ld_exps]), codes, cols, b.ld, dst + (kk ^ 1) * kPanel);
    });
    if (k % 2 != 0) memset(dst + (k ^ 1) * kPanel, 0, sizeof(float) * kPanel);
  }

  // Rows, at most, that are multiplied with two panels at a time (0 or 1).
  static constexpr int kWideRows = kPanel / R::kLanes == 2 ? 1 : 0;

  // ---- Up to kFewRows rows of a, times columns n0 .. n0 + kPanel - 1 of W^T, added to c or, where
  // not accumulated, put there. wide: up to kWideRows rows, twice the columns. REQUIRES k > 0.
  template <class Tile>
  static void few_of_weight_t(int rows, bool wide, const PackedWeight& w, int64_t n0, int64_t k0,
                              int64_t k, const float* a, float* c, int64_t ldc, bool accumulate) {
    const int64_t total = (k + 1) / 2 * 2;
    const int64_t first = panel_at(w, n0, k0);
    const int64_t columns = wide ? 2 * kPanel : kPanel;
    for (int i = 0; i < rows && !accumulate; ++i)
      memset(c + i * ldc, 0, sizeof(float) * static_cast<size_t>(columns));
    if (w.elem == Elem::kNf4) {
      few_of_nf4_t<Ops, Tile>(rows, w, n0, k0, k, a, c, ldc);
      if (wide) few_of_nf4_t<Ops, Tile>(rows, w, n0 + kPanel, k0, k, a, c + kPanel, ldc);
      return;
    }
    const int64_t panel = padded(w.k) * kPanel * elem_bytes(w.elem);
    const auto run = [&](const auto& from, const uint8_t* src, int64_t count) {
      if constexpr (kWideRows > 0) {
        if (wide) return few_rows<Ops, 1, 2>(from, src, panel, count, a, c, ldc);
      }
      few_rows_of<Ops>(rows, from, src, count, a, c, ldc);
    };
    if (w.elem == Elem::kBf16) return run(Bf16Rows{}, w.data + first * 2, total);
    for (int64_t r = 0; r < total; r += kWeightBlock, a += Ops::kMr * kWeightBlock) {
      const int64_t count = total - r < kWeightBlock ? total - r : kWeightBlock;
      with_decoder<Ops>(w.elem, exp_of(w, n0, k0 + r), Tile::kRounds, [&](auto decode) {
        run(Fp8Rows<decltype(decode)>{decode}, w.data + first + r * kPanel, count);
      });
    }
  }

 private:
  template <class Decoder>
  static LF_INLINE void fp8_row(const Decoder& decode, const uint8_t* codes, int cols, int64_t ld,
                                float* out) {
    // The next rows' lines are far apart, where the CPU does not look for them by itself.
    __builtin_prefetch(codes + Ops::kRowsAhead * ld);
    alignas(16) uint8_t edge[kPanel];
    if (cols < kPanel) {
      memset(edge, 0, sizeof edge);
      memcpy(edge, codes, static_cast<size_t>(cols));
      codes = edge;
    }
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPanel; j += 16) decode(Ops::load_codes(codes + j)).store(out + j);
  }

  template <class Decoder>
  struct Fp8Rows {
    Decoder decode;
    static constexpr int64_t kBytes = 16;
    LF_INLINE V load(const uint8_t* p) const { return decode(Ops::load_codes(p)); }
  };
  struct Bf16Rows {
    static constexpr int64_t kBytes = 32;
    LF_INLINE V load(const uint8_t* p) const { return V::load(reinterpret_cast<const Bf16*>(p)); }
  };

  // The part that panel_of_weight() reads of the panel after the next, which is far away.
  static void ask_ahead(const PackedWeight& w, int64_t row, int64_t j0) {
    const uint8_t* p = w.data + panel_at(w, row + 2 * kPanel, j0) * elem_bytes(w.elem);
    for (int64_t i = 0; i < kPanel * kPanel * elem_bytes(w.elem); i += 64)
      __builtin_prefetch(p + i);
  }

  // A 16 x 16 block [k'][kPanel n] (k' odd first); rows: how many of the 16 n the panel still
  // takes; row n goes to dst + (n ^ 1) * kPanel.
  template <bool kRound, class T>
  static LF_INLINE void transpose_values(const T* src, int64_t rows, float* dst) {
    constexpr int L = R::kLanes;
    for (int n0 = 0; n0 < 16; n0 += L) {
      for (int k0 = 0; k0 < 16; k0 += L) {
        R r[L];
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) r[i] = R::load(src + (k0 + (i ^ 1)) * kPanel + n0);
        R::transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) {
          if (n0 + i >= rows) break;
          const R x = kRound ? r[i].to_bf16() : r[i];
          x.store(dst + ((n0 + i) ^ 1) * kPanel + k0);
        }
      }
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels
