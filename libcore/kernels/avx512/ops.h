// What the AVX-512 ISA (F, BW, VL, VBMI, BF16) gives to the generic gemm and attention: see
// generic/tile.md. 6 rows x 64 columns: 24 accumulators, 4 registers of B, broadcasts of A.
#pragma once

#include "kernels/avx512/micro.h"
#include "kernels/generic/pair_panels.h"

namespace loongforge::kernels::avx512 {
namespace {

struct Ops {
  using V = avx512::V;
  template <class Operand, bool kRound>
  using Row = PairRow<Operand, kRound>;
  using Table = ImageTable;
  using Nf4 = Nf4Table;
  template <bool kRound>
  using Nf4Row = avx512::Nf4Row<kRound>;

  static constexpr int kMr = 6, kNr = 64;
  // A panel of B takes 256 KiB: a part of L2 that leaves room for A; with few rows 32 KiB.
  static constexpr int64_t kABytes = 2 << 20;
  static constexpr int64_t kKBlock = 1024, kShortKBlock = 128;
  static constexpr int64_t kRowsAhead = 24;  // whose lines are asked for in advance

  // ---- Operands of plain matrices.
  template <class RowT>
  static LF_INLINE void load_pairs(const Bf16* p, int n, RowT* row) {
    load_row_pairs(p, n, row);
  }
  template <class RowT>
  static LF_INLINE void load_pairs(const float* p, int n, RowT* row) {
    load_row_pairs(p, n, row);
  }
  template <class RowT>
  static LF_INLINE void load_columns(const Bf16* even, const Bf16* odd, int n, RowT rows[2]) {
    const __mmask32 valid = n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
    const Words w =
        interleave(_mm512_maskz_loadu_epi16(valid, even),
                   odd != nullptr ? _mm512_maskz_loadu_epi16(valid, odd) : _mm512_setzero_si512());
    make_pairs(w.lo, &rows[0]);
    make_pairs(w.hi, &rows[1]);
  }
  template <class RowT>
  static LF_INLINE void load_columns(const float* even, const float* odd, int n, RowT rows[1]) {
    make_pairs(V::load_part(even, n), odd != nullptr ? V::load_part(odd, n) : V::zero(), &rows[0]);
  }
  template <class RowT>
  static LF_INLINE void load_six(const Bf16* even, const Bf16* odd, int n, RowT* row) {
    const __mmask16 valid = V::first(n);
    const __m256i e = _mm256_maskz_loadu_epi16(valid, even);
    const __m256i o =
        odd != nullptr ? _mm256_maskz_loadu_epi16(valid, odd) : _mm256_setzero_si256();
    const __m128i e8 = _mm256_castsi256_si128(e), o8 = _mm256_castsi256_si128(o);
    const __m256i words = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_unpacklo_epi16(e8, o8)), _mm_unpackhi_epi16(e8, o8), 1);
    make_pairs(_mm512_castsi256_si512(words), row);
  }
  template <class RowT>
  static LF_INLINE void load_six(const float* even, const float* odd, int n, RowT* row) {
    make_pairs(V::load_part(even, n), odd != nullptr ? V::load_part(odd, n) : V::zero(), row);
  }

  static LF_INLINE __m512i load_words(const void* p) { return _mm512_loadu_si512(p); }

  // ---- Micro-kernels of 1 to 4 rows.
  template <class Tile>
  static void few_fp8_rows(int rows, bool wide, const uint8_t* src, int64_t panel,
                           const uint16_t* images, const int8_t* exps, int64_t pairs,
                           const typename Tile::Operand* a, float* c, int64_t ldc) {
    using Fn = void (*)(const uint8_t*, int64_t, const uint16_t*, const int8_t*, int64_t,
                        const typename Tile::Operand*, float*, int64_t);
    static constexpr Fn kFns[5] = {few_fp8<Tile, 1, 2>, few_fp8<Tile, 1, 1>, few_fp8<Tile, 2, 1>,
                                   few_fp8<Tile, 3, 1>, few_fp8<Tile, 4, 1>};
    kFns[wide ? 0 : rows](src, panel, images, exps, pairs, a, c, ldc);
  }
  template <class Tile>
  static void few_bf16_rows(int rows, bool wide, const uint8_t* src, int64_t panel, int64_t pairs,
                            const typename Tile::Operand* a, float* c, int64_t ldc) {
    using Fn =
        void (*)(const uint8_t*, int64_t, int64_t, const typename Tile::Operand*, float*, int64_t);
    static constexpr Fn kFns[5] = {few_bf16<Tile, 1, 2>, few_bf16<Tile, 1, 1>, few_bf16<Tile, 2, 1>,
                                   few_bf16<Tile, 3, 1>, few_bf16<Tile, 4, 1>};
    kFns[wide ? 0 : rows](src, panel, pairs, a, c, ldc);
  }
  template <class Tile>
  static void few_nf4_rows(int rows, const uint8_t* block, int64_t pairs,
                           const typename Tile::Operand* a, float* c, int64_t ldc) {
    using Fn = void (*)(const uint8_t*, int64_t, const typename Tile::Operand*, float*, int64_t);
    static constexpr Fn kFns[4] = {few_nf4<Tile, 1>, few_nf4<Tile, 2>, few_nf4<Tile, 3>,
                                   few_nf4<Tile, 4>};
    kFns[rows - 1](block, pairs, a, c, ldc);
  }

  // ---- Named alike elsewhere in this folder.
#define LF_FORWARD(name)                        \
  template <class... Args>                      \
  static LF_INLINE void name(Args&&... args) {  \
    avx512::name(static_cast<Args&&>(args)...); \
  }
  LF_FORWARD(store_pairs)
  LF_FORWARD(store_row)
  LF_FORWARD(put_pair)
  LF_FORWARD(transpose_rows)
  LF_FORWARD(write_a)
  LF_FORWARD(store_a_pair)
  LF_FORWARD(fp8_rows16)
  LF_FORWARD(bf16_rows16)
#undef LF_FORWARD
  template <class Tile>
  static LF_INLINE void store_values(typename Tile::Operand* panel, int64_t pair, int group, V even,
                                     V odd) {
    avx512::store_values<Tile>(panel, pair, group, even, odd);
  }
  template <class Tile>
  static LF_INLINE void f32_rows16(const float* src, int64_t pairs, typename Tile::Operand* dst) {
    avx512::f32_rows16<Tile>(src, pairs, dst);
  }
  template <bool kRound, class Operand>
  static LF_INLINE void fp8_row_pair(const ImageTable& t, const uint8_t* even, const uint8_t* odd,
                                     int cols, int even_exp, int odd_exp, int64_t pair,
                                     Operand* dst) {
    avx512::fp8_row_pair<kRound>(t, even, odd, cols, even_exp, odd_exp, pair, dst);
  }
};

using TileBf16 = PairTile<Ops, DotStep, Bf16, true>;
using TileBf16Fma = PairTile<Ops, FmaStep, float, true>;
using TileF32 = PairTile<Ops, FmaStep, float, false>;

}  // namespace

// Whether vdpbf16ps is worth using here: at least as fast as two zmm FMA. Measured once.
bool dot_is_fast() noexcept;

}  // namespace loongforge::kernels::avx512
