// The micro-kernels, once for every ISA: named accumulators and one instance per shape and start,
// because g++ keeps arrays of them, or a start chosen at run time, on the stack. At most 6 rows and
// 4 registers of columns.
//
// Step: one step of k. A panel's element is 32 bits: an fp32 value, or a pair of bf16 (an even and
// the next k).
//   Element; R (R::kLanes sums, load, store, zero); kMr, kNr: the full tile; kPerPair: steps of a
//   pair of k, 2 or 1; B load(const Element*): kLanes elements; broadcast(const Element*);
//   mul_add(broadcast, B, R sum); hold(B, B, B, B): after the last use of a step's columns, for an
//   ISA where g++ would otherwise give their registers to the last sums and move those back.
#pragma once

#include "kernels/generic/strided.h"

namespace loongforge::kernels {
namespace {

// What a tile asks of memory while it multiplies: a line at p, p + step, ... with every pair of k.
struct Ahead {
  const uint8_t* p = nullptr;
  int64_t step = 0;
};

// Each element of k is a step of its own: fp32 operands.
template <class Ops>
struct FmaStep {
  using Element = float;
  using R = typename Ops::R;
  static constexpr int kMr = Ops::kMr, kNr = Ops::kNr, kPerPair = 2;
  static LF_INLINE R load(const float* p) { return R::load(p); }
  static LF_INLINE R broadcast(const float* p) { return R::broadcast(p); }
  static LF_INLINE R mul_add(R x, R b, R sum) { return R::mul_add(x, b, sum); }
  static LF_INLINE void hold(R, R, R, R) {}
};

#define LF_TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define LF_TILE_COLS(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3)
#define LF_TILE_START_ONE(i, v) \
  R c##i##v = R::zero();        \
  if constexpr (kFromC && i < kRows && v < kVecs) c##i##v = R::load(c + i * ldc + R::kLanes * v);
#define LF_TILE_START(i) LF_TILE_COLS(LF_TILE_START_ONE, i)
#define LF_TILE_STEP_ONE(i, v) \
  if constexpr (v < kVecs) c##i##v = Step::mul_add(x, b##v, c##i##v);
#define LF_TILE_STORE_ONE(i, v) \
  if constexpr (i < kRows && v < kVecs) c##i##v.store(c + i * ldc + R::kLanes * v);
#define LF_TILE_STORE(i) LF_TILE_COLS(LF_TILE_STORE_ONE, i)
#define LF_TILE_LOAD_B                                             \
  const auto b0 = Step::load(b);                                   \
  const auto b1 = Step::load(b + (kVecs > 1 ? 1 : 0) * R::kLanes); \
  const auto b2 = Step::load(b + (kVecs > 2 ? 2 : 0) * R::kLanes); \
  const auto b3 = Step::load(b + (kVecs > 3 ? 3 : 0) * R::kLanes);

// ---- Of two packed panels.
#define LF_TILE_STEP(i)                    \
  if constexpr (i < kRows) {               \
    const auto x = Step::broadcast(a + i); \
    LF_TILE_COLS(LF_TILE_STEP_ONE, i)      \
  }
#define LF_TILE_K               \
  {                             \
    LF_TILE_LOAD_B              \
    LF_TILE_ROWS(LF_TILE_STEP)  \
    Step::hold(b0, b1, b2, b3); \
    a += Step::kMr;             \
    b += Step::kNr;             \
  }

#define LF_TILE_PAIR               \
  __builtin_prefetch(ahead, 0, 2); \
  ahead += step;                   \
  LF_TILE_K                        \
  if constexpr (Step::kPerPair == 2) LF_TILE_K

// kUnroll: pairs of a turn, 1 or 2. REQUIRES pairs > 0.
template <class Step, int kRows, int kUnroll, bool kFromC>
[[gnu::noinline]] void mul_tile(int64_t pairs, const void* a_panel, const void* b_panel, float* c,
                                int64_t ldc, const uint8_t* ahead, int64_t step) {
  using R = typename Step::R;
  constexpr int kVecs = Step::kNr / R::kLanes;
  const auto* a = static_cast<const typename Step::Element*>(a_panel);
  const auto* b = static_cast<const typename Step::Element*>(b_panel);
  LF_TILE_ROWS(LF_TILE_START)
  if constexpr (kUnroll == 2) {
    for (; pairs >= 2; pairs -= 2) {
      LF_TILE_PAIR
      LF_TILE_PAIR
    }
    if (pairs != 0) {
      LF_TILE_PAIR
    }
  } else {
    do {
      LF_TILE_PAIR
    } while (--pairs > 0);
  }
  // Keeps g++ from working out the addresses of all stores before the loop and spilling them.
  __asm__("" : "+r"(c), "+r"(ldc));
  LF_TILE_ROWS(LF_TILE_STORE)
}
#undef LF_TILE_PAIR
#undef LF_TILE_K
#undef LF_TILE_STEP

// ---- Of an A that stands in memory: see strided.h.
#define LF_TILE_STEP(i)                                                 \
  if constexpr (i < kRows) {                                            \
    const auto x = Step::broadcast((i < 3 ? low : high) + i % 3 * row); \
    LF_TILE_COLS(LF_TILE_STEP_ONE, i)                                   \
  }
#define LF_TILE_K(at)               \
  {                                 \
    const auto* low = a_low + at;   \
    const auto* high = a_high + at; \
    LF_TILE_LOAD_B                  \
    LF_TILE_ROWS(LF_TILE_STEP)      \
    Step::hold(b0, b1, b2, b3);     \
    b += Step::kNr;                 \
  }
#define LF_TILE_PAIR                   \
  if constexpr (Step::kPerPair == 2) { \
    LF_TILE_K(odd)                     \
    LF_TILE_K(even)                    \
  } else {                             \
    LF_TILE_K(0)                       \
  }                                    \
  a_low += step;                       \
  a_high += step;

// What is known of a StridedA's strides: any; rows that stand one after another in k; columns that
// do. Working out addresses takes ports that multiply.
enum class Strides { kAny, kRows, kColumns };
template <class Step>
LF_INLINE Strides strides_of(const StridedA& a) {
  if (a.step == Step::kPerPair && (Step::kPerPair == 1 || (a.odd == 1 && a.even == 0)))
    return Strides::kRows;
  return a.row == 1 && a.even == 0 ? Strides::kColumns : Strides::kAny;
}

// kUnroll: pairs of a turn, 1 or 2. REQUIRES pairs > 0.
template <class Step, int kRows, int kVecs, int kUnroll, bool kFromC,
          Strides kKnown = Strides::kAny>
[[gnu::noinline]] void strided_tile(int64_t pairs, const StridedA& a, const void* b_panel, float* c,
                                    int64_t ldc) {
  using R = typename Step::R;
  const int64_t row = kKnown == Strides::kColumns ? 1 : a.row;
  const int64_t step = kKnown == Strides::kRows ? Step::kPerPair : a.step;
  [[maybe_unused]] const int64_t odd = kKnown == Strides::kRows ? 1 : a.odd;
  [[maybe_unused]] const int64_t even = kKnown == Strides::kAny ? a.even : 0;
  const auto* a_low = static_cast<const typename Step::Element*>(a.data);
  const auto* a_high = a_low + 3 * row;
  const auto* b = static_cast<const typename Step::Element*>(b_panel);
  LF_TILE_ROWS(LF_TILE_START)
  if constexpr (kUnroll == 2) {
    for (; pairs >= 2; pairs -= 2) {
      LF_TILE_PAIR
      LF_TILE_PAIR
    }
    if (pairs != 0) {
      LF_TILE_PAIR
    }
  } else {
    do {
      LF_TILE_PAIR
    } while (--pairs > 0);
  }
  // Keeps g++ from working out the addresses of all stores before the loop and spilling them.
  __asm__("" : "+r"(c), "+r"(ldc));
  LF_TILE_ROWS(LF_TILE_STORE)
}
#undef LF_TILE_PAIR
#undef LF_TILE_K
#undef LF_TILE_STEP

// ---- The same with twice the rows and few columns, whose sums would wait for each other.
inline constexpr int kNarrowRows = 12;
#define LF_TILE_NARROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define LF_TILE_NARROW_START(i)                          \
  R c##i##_0 = R::zero(), c##i##_1 = R::zero();          \
  if constexpr (kFromC) c##i##_0 = R::load(c + i * ldc); \
  if constexpr (kFromC && kVecs > 1) c##i##_1 = R::load(c + i * ldc + R::kLanes);
#define LF_TILE_NARROW_STEP(i)                                          \
  {                                                                     \
    const auto x = Step::broadcast(a##i + at);                          \
    c##i##_0 = Step::mul_add(x, b0, c##i##_0);                          \
    if constexpr (kVecs > 1) c##i##_1 = Step::mul_add(x, b1, c##i##_1); \
  }
#define LF_TILE_NARROW_STORE(i) \
  c##i##_0.store(c + i * ldc);  \
  if constexpr (kVecs > 1) c##i##_1.store(c + i * ldc + R::kLanes);
#define LF_TILE_NARROW_K(where)                                      \
  {                                                                  \
    const int64_t at = where;                                        \
    const auto b0 = Step::load(b);                                   \
    const auto b1 = Step::load(b + (kVecs > 1 ? 1 : 0) * R::kLanes); \
    LF_TILE_NARROW(LF_TILE_NARROW_STEP)                              \
    b += Step::kNr;                                                  \
  }

// REQUIRES pairs > 0.
template <class Step, int kVecs, bool kFromC>
[[gnu::noinline]] void narrow_tile(int64_t pairs, const StridedA& a, const void* b_panel, float* c,
                                   int64_t ldc) {
  using R = typename Step::R;
  const int64_t row = a.row, step = a.step;
  [[maybe_unused]] const int64_t odd = a.odd, even = a.even;
  // Four pointers; the rows between them are an index away.
  const auto* a0 = static_cast<const typename Step::Element*>(a.data);
  const auto *a3 = a0 + 3 * row, *a6 = a0 + 6 * row, *a9 = a0 + 9 * row;
  const auto* b = static_cast<const typename Step::Element*>(b_panel);
  LF_TILE_NARROW(LF_TILE_NARROW_START)
  do {
    const auto *a1 = a0 + row, *a2 = a0 + 2 * row, *a4 = a3 + row, *a5 = a3 + 2 * row,
               *a7 = a6 + row, *a8 = a6 + 2 * row, *a10 = a9 + row, *a11 = a9 + 2 * row;
    if constexpr (Step::kPerPair == 2) {
      LF_TILE_NARROW_K(odd)
      LF_TILE_NARROW_K(even)
    } else {
      LF_TILE_NARROW_K(0)
    }
    a0 += step;
    a3 += step;
    a6 += step;
    a9 += step;
  } while (--pairs > 0);
  __asm__("" : "+r"(c), "+r"(ldc));
  LF_TILE_NARROW(LF_TILE_NARROW_STORE)
}
#undef LF_TILE_NARROW
#undef LF_TILE_NARROW_START
#undef LF_TILE_NARROW_STEP
#undef LF_TILE_NARROW_STORE
#undef LF_TILE_NARROW_K

// ---- Tables of them. Micro: what a PanelTile (panel_tile.h) multiplies with.
template <class Step, int kStridedUnroll, int kUnroll = 1>
struct RegisterTiles {
  static constexpr int kMr = Step::kMr, kNr = Step::kNr;
  static_assert(kMr <= 6 && kNr % 16 == 0 && kNr / Step::R::kLanes <= 4);

  // c[mr][kNr], pairs > 0.
  static void mul(int mr, int64_t pairs, const void* a, const void* b, float* c, int64_t ldc,
                  bool from_c, Ahead ahead) {
    using Fn =
        void (*)(int64_t, const void*, const void*, float*, int64_t, const uint8_t*, int64_t);
    // Nothing to ask for: a line that is there.
    if (ahead.p == nullptr) ahead.p = static_cast<const uint8_t*>(a);
    static constexpr Fn kFns[2][6] = {
        {mul_tile<Step, 1, kUnroll, false>, mul_tile<Step, 2, kUnroll, false>,
         mul_tile<Step, 3, kUnroll, false>, mul_tile<Step, 4, kUnroll, false>,
         mul_tile<Step, 5, kUnroll, false>, mul_tile<Step, 6, kUnroll, false>},
        {mul_tile<Step, 1, kUnroll, true>, mul_tile<Step, 2, kUnroll, true>,
         mul_tile<Step, 3, kUnroll, true>, mul_tile<Step, 4, kUnroll, true>,
         mul_tile<Step, 5, kUnroll, true>, mul_tile<Step, 6, kUnroll, true>}};
    kFns[from_c][mr - 1](pairs, a, b, c, ldc, ahead.p, ahead.step);
  }

  // c[mr][nr], nr a multiple of 16, pairs > 0.
  static void strided(int mr, int nr, int64_t pairs, const StridedA& a, const void* b, float* c,
                      int64_t ldc, bool from_c) {
    static constexpr const StridedFn* kFns[2][4] = {
        {kStrided<1, false>, kStrided<2, false>, kStrided<3, false>, kStrided<4, false>},
        {kStrided<1, true>, kStrided<2, true>, kStrided<3, true>, kStrided<4, true>}};
    if (mr == kMr && nr == kNr) {
      static constexpr StridedFn kFull[3][2] = {
          {kFullTile<Strides::kAny, false>, kFullTile<Strides::kAny, true>},
          {kFullTile<Strides::kRows, false>, kFullTile<Strides::kRows, true>},
          {kFullTile<Strides::kColumns, false>, kFullTile<Strides::kColumns, true>}};
      return kFull[static_cast<int>(strides_of<Step>(a))][from_c](pairs, a, b, c, ldc);
    }
    kFns[from_c][nr / 16 - 1][mr - 1](pairs, a, b, c, ldc);
  }

  // c[kNarrowRows][vecs registers], pairs > 0.
  static void narrow(int vecs, int64_t pairs, const StridedA& a, const void* b, float* c,
                     int64_t ldc, bool from_c) {
    static constexpr StridedFn kFns[2][2] = {
        {narrow_tile<Step, 1, false>, narrow_tile<Step, 1, true>},
        {narrow_tile<Step, kMaxVecs, false>, narrow_tile<Step, kMaxVecs, true>}};
    kFns[vecs - 1][from_c](pairs, a, b, c, ldc);
  }
  static constexpr int kNarrowLanes = Step::R::kLanes;  // of a register
  static constexpr int kMaxVecs = kNr / kNarrowLanes >= 4 ? 2 : 1;

 private:
  using StridedFn = void (*)(int64_t, const StridedA&, const void*, float*, int64_t);
  // Registers of 16 * sixteens columns, at most the tile's.
  static constexpr int vecs(int sixteens) {
    return (16 * sixteens < kNr ? 16 * sixteens : kNr) / Step::R::kLanes;
  }
  template <Strides kKnown, bool kFromC>
  static constexpr StridedFn kFullTile =
      strided_tile<Step, kMr, vecs(kNr / 16), kStridedUnroll, kFromC, kKnown>;
  template <int kSixteens, bool kFromC>
  static constexpr StridedFn kStrided[6] = {
      strided_tile<Step, 1, vecs(kSixteens), kStridedUnroll, kFromC>,
      strided_tile<Step, 2, vecs(kSixteens), kStridedUnroll, kFromC>,
      strided_tile<Step, 3, vecs(kSixteens), kStridedUnroll, kFromC>,
      strided_tile<Step, 4, vecs(kSixteens), kStridedUnroll, kFromC>,
      strided_tile<Step, 5, vecs(kSixteens), kStridedUnroll, kFromC>,
      strided_tile<Step, 6, vecs(kSixteens), kStridedUnroll, kFromC>};
};
#undef LF_TILE_ROWS
#undef LF_TILE_COLS
#undef LF_TILE_START_ONE
#undef LF_TILE_START
#undef LF_TILE_STEP_ONE
#undef LF_TILE_STORE_ONE
#undef LF_TILE_STORE
#undef LF_TILE_LOAD_B

}  // namespace
}  // namespace loongforge::kernels
