// The register tiles of the AVX-512 ISA (F, BW, VL, VBMI, BF16): see generic/tile.md. 6 rows x 64
// columns: 24 accumulators, 4 registers of B, broadcasts of A.
//
// Precision::kBf16 has two tiles of the same results: TileBf16 (vdpbf16ps) and TileBf16Fma (fp32
// operands, zmm FMA). The first is twice as fast on Zen 4, the second on Sapphire Rapids, whose
// vdpbf16ps starts every other cycle.
#pragma once

#include <stddef.h>

#include "kernels/avx512/intrinsics.h"
#include "kernels/avx512/pack.h"

namespace loongforge::kernels::avx512 {
namespace {

// Named accumulators and one instance per row count and start: g++ 12 keeps arrays of them, or a
// start chosen at run time, on the stack.
#define LF_TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define LF_TILE_START(i)                         \
  __m512 c##i##0 = _mm512_setzero_ps();          \
  __m512 c##i##1 = _mm512_setzero_ps();          \
  __m512 c##i##2 = _mm512_setzero_ps();          \
  __m512 c##i##3 = _mm512_setzero_ps();          \
  if constexpr (kFromC && i < kRows) {           \
    c##i##0 = _mm512_loadu_ps(c + i * ldc);      \
    c##i##1 = _mm512_loadu_ps(c + i * ldc + 16); \
    c##i##2 = _mm512_loadu_ps(c + i * ldc + 32); \
    c##i##3 = _mm512_loadu_ps(c + i * ldc + 48); \
  }
#define LF_TILE_STEP(i)                    \
  if constexpr (i < kRows) {               \
    const auto x = Op::broadcast(a + i);   \
    c##i##0 = Op::mul_add(x, b0, c##i##0); \
    c##i##1 = Op::mul_add(x, b1, c##i##1); \
    c##i##2 = Op::mul_add(x, b2, c##i##2); \
    c##i##3 = Op::mul_add(x, b3, c##i##3); \
  }
#define LF_TILE_STORE(i)                         \
  if constexpr (i < kRows) {                     \
    _mm512_storeu_ps(c + i * ldc, c##i##0);      \
    _mm512_storeu_ps(c + i * ldc + 16, c##i##1); \
    _mm512_storeu_ps(c + i * ldc + 32, c##i##2); \
    _mm512_storeu_ps(c + i * ldc + 48, c##i##3); \
  }

// One step of a tile: 32-bit elements, an fp32 value or a pair of bf16. The sums are written as asm
// so that each stays in its register: g++ 12 rotates them through the factors' registers otherwise,
// with moves in between.
#ifdef LF_EMULATE_AVX512
#define LF_ACCUMULATE(instruction, intrinsic) sum = intrinsic
#define LF_ACCUMULATE_AT(instruction) sum = mul_add(broadcast(p), y, sum)
#else
#define LF_ACCUMULATE_AT(instruction) \
  __asm__(instruction " %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(y), "m"(*p))
#define LF_ACCUMULATE(instruction, intrinsic) \
  __asm__(instruction " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#endif
struct FmaOp {
  using Element = float;
  static constexpr bool kPairs = false;
  static LF_INLINE __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  static LF_INLINE __m512 broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static LF_INLINE __m512 mul_add(__m512 x, __m512 y, __m512 sum) {
    LF_ACCUMULATE("vfmadd231ps", _mm512_fmadd_ps(x, y, sum));
    return sum;
  }
  // The same with *p broadcast, in one instruction.
  static LF_INLINE __m512 mul_add_at(const float* p, __m512 y, __m512 sum) {
    LF_ACCUMULATE_AT("vfmadd231ps");
    return sum;
  }
};
struct DotOp {
  using Element = int32_t;
  static constexpr bool kPairs = true;
  static LF_INLINE __m512i load(const int32_t* p) { return _mm512_loadu_si512(p); }
  static LF_INLINE __m512i broadcast(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static LF_INLINE __m512 mul_add(__m512i x, __m512i y, __m512 sum) {
    LF_ACCUMULATE("vdpbf16ps", _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y));
    return sum;
  }
  static LF_INLINE __m512 mul_add_at(const int32_t* p, __m512i y, __m512 sum) {
    LF_ACCUMULATE_AT("vdpbf16ps");
    return sum;
  }
};
#undef LF_ACCUMULATE
#undef LF_ACCUMULATE_AT

// REQUIRES steps > 0: elements of k (fp32, an even number of them) or pairs of k (bf16).
template <class Op, int kRows, bool kFromC>
[[gnu::noinline]] void mul_tile(int64_t steps, const void* a_panel, const void* b_panel, float* c,
                                int64_t ldc) {
  const auto* a = static_cast<const typename Op::Element*>(a_panel);
  const auto* b = static_cast<const typename Op::Element*>(b_panel);
  LF_TILE_ROWS(LF_TILE_START)
  // fp32 panels hold pairs of k: two steps a turn.
  constexpr int kTurn = Op::kPairs ? 1 : 2;
  do {
    auto b0 = Op::load(b), b1 = Op::load(b + 16), b2 = Op::load(b + 32), b3 = Op::load(b + 48);
    LF_TILE_ROWS(LF_TILE_STEP)
    a += 6;
    if constexpr (!Op::kPairs) {
      b0 = Op::load(b + 64), b1 = Op::load(b + 80), b2 = Op::load(b + 96), b3 = Op::load(b + 112);
      LF_TILE_ROWS(LF_TILE_STEP)
      a += 6;
    }
    b += 64 * kTurn;
    steps -= kTurn;
  } while (steps > 0);
  LF_TILE_ROWS(LF_TILE_STORE)
}
#undef LF_TILE_START
#undef LF_TILE_STEP
#undef LF_TILE_STORE
#undef LF_TILE_ROWS

template <class Op, class OperandT, bool kRound>
struct Tile {
  using Operand = OperandT;
  static constexpr bool kRounds = kRound;
  static constexpr int kMr = 6;
  static constexpr int kNr = 64;
  static size_t a_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kMr>(k)); }
  static size_t b_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kNr>(k)); }

  static void mul(int mr, int nr, int64_t k, const Operand* a, const Operand* b, float* c,
                  int64_t ldc, bool accumulate) {
    const int64_t steps = sizeof(Operand) == 2 ? (k + 1) / 2 : (k + 1) / 2 * 2;
    if (nr == kNr && k > 0) return mul_full(mr, steps, a, b, c, ldc, accumulate);
    alignas(64) float tile[kMr * kNr] = {};
    if (accumulate) load_tile<kNr>(mr, nr, c, ldc, tile);
    if (k > 0) mul_full(mr, steps, a, b, tile, kNr, true);
    store_tile<kNr>(mr, nr, tile, c, ldc);
  }

  template <class T>
  static void pack_a(const T* src, int64_t ld, int rows_valid, int64_t k, Operand* dst) {
    pack_a_rows<kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_a_t(const T* src, int64_t ld, int rows_valid, int64_t k, Operand* dst) {
    pack_a_columns<kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_b(const T* src, int64_t ld, int cols_valid, int64_t k, Operand* dst) {
    pack_b_rows<kRound>(src, ld, cols_valid, k, dst);
  }
  template <class T>
  static void pack_b_t(const T* src, int64_t ld, int cols_valid, int64_t k, Operand* dst) {
    pack_b_columns<kRound>(src, ld, cols_valid, k, dst);
  }

 private:
  static void mul_full(int mr, int64_t steps, const Operand* a, const Operand* b, float* c,
                       int64_t ldc, bool from_c) {
    using Fn = void (*)(int64_t, const void*, const void*, float*, int64_t);
    static constexpr Fn kFns[2][kMr] = {
        {mul_tile<Op, 1, false>, mul_tile<Op, 2, false>, mul_tile<Op, 3, false>,
         mul_tile<Op, 4, false>, mul_tile<Op, 5, false>, mul_tile<Op, 6, false>},
        {mul_tile<Op, 1, true>, mul_tile<Op, 2, true>, mul_tile<Op, 3, true>, mul_tile<Op, 4, true>,
         mul_tile<Op, 5, true>, mul_tile<Op, 6, true>}};
    kFns[from_c][mr - 1](steps, a, b, c, ldc);
  }
};

using TileBf16 = Tile<DotOp, Bf16, true>;
using TileBf16Fma = Tile<FmaOp, float, true>;
using TileF32 = Tile<FmaOp, float, false>;

}  // namespace

// Whether vdpbf16ps is worth using here: at least as fast as two zmm FMA. Measured once.
bool dot_is_fast() noexcept;

}  // namespace loongforge::kernels::avx512
