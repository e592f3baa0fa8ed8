// gemm's loops, once for every ISA: a row block of A and a K block at a time, then panel by panel
// of B.
//
//   for each row block (of a size that keeps packed A within kABytes)
//     for each column chunk (one, unless C is bf16 and there are several K blocks: their sums wait
//     in scratch)
//       for each K block (terms joined one after another, at most Isa::k_block<Tile> or a little
//       more)
//         pack A;  for each panel of kNr columns: make the panel of B, multiply all row tiles by it
//
// Isa provides: V (vec.h); k_block<Tile>, the K block's length, a multiple of 128;
//   direct_panel<Tile>(term, j0, k0): B panel that already stands in the weight in operand order,
//   or null; make_panel<Tile>(term, n, j0, k0, k, dst): B columns [j0, j0 + kNr), rows [k0, k0 + k)
//   of one term; columns >= n are 0; mul_few<Tile>(...): see there.
// j0 is a multiple of kNr, k0 of 128.
#pragma once

#include <stddef.h>

#include "kernels/gemm.h"
#include "kernels/generic/pack.h"

namespace loongforge::kernels {
namespace {

[[maybe_unused]] inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
[[maybe_unused]] inline int64_t round_down(int64_t x, int64_t to) { return x / to * to; }
[[maybe_unused]] inline int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
[[maybe_unused]] inline int64_t even(int64_t k) { return round_up(k, 2); }

inline constexpr int64_t kABytes = int64_t{2} << 20;  // packed A
inline constexpr int64_t kSumElems =
    int64_t{1} << 19;                   // fp32 sums of bf16 results that wait for the next K block
inline constexpr int64_t kKSlack = 64;  // a term's end this long joins a block that is full
inline constexpr int64_t kTransposeBlock =
    256;  // rows of a transposed A that stay in L1 for several panels

// A place in the joined K of all terms.
struct KPlace {
  int term;
  int64_t k;
};

template <class Isa, class Tile>
class GemmPiece {
 public:
  using Operand = typename Tile::Operand;

  static size_t scratch_bytes() {
    return static_cast<size_t>(kABytes) + kPanelElems * sizeof(Operand) +
           (kSumElems + kTileElems) * sizeof(float);
  }

  GemmPiece(const GemmJob& job, int64_t n0, int64_t n1, void* scratch)
      : job_(job), n0_(n0), n1_(n1) {
    auto* p = static_cast<uint8_t*>(scratch);
    a_ = reinterpret_cast<Operand*>(p);
    b_ = reinterpret_cast<Operand*>(p + kABytes);
    sums_ = reinterpret_cast<float*>(p + kABytes + kPanelElems * sizeof(Operand));
    tile_ = sums_ + kSumElems;
    int64_t total = 0;
    for (int t = 0; t < job.n_terms; ++t) total += even(job.terms[t].k);
    const int64_t kc = Isa::template k_block<Tile>;
    const int64_t blocks = total > kc + kKSlack ? (total - kKSlack + kc - 1) / kc : 1;
    k_limit_ = round_up(blocks > 1 ? (total - kKSlack + blocks - 1) / blocks : total, kKUnit);
    if (k_limit_ < kKUnit) k_limit_ = kKUnit;
    sums_wait_ = job.c.elem == Elem::kBf16 && blocks > 1;
  }

  void run(int64_t m0, int64_t m1) {
    if (m0 >= m1 || n0_ >= n1_) return;
    const int64_t block_bytes = (k_limit_ + kKSlack + 2) * static_cast<int64_t>(sizeof(Operand));
    int64_t limit = kABytes / block_bytes / Tile::kMr * Tile::kMr;
    if (sums_wait_) limit = at_most(limit, kMaxWaitingRows);
    const int64_t pieces = (m1 - m0 + limit - 1) / limit;
    const int64_t step = round_up((m1 - m0 + pieces - 1) / pieces, Tile::kMr);
    for (m0_ = m0; m0_ < m1; m0_ += step) {
      rows_ = at_most(step, m1 - m0_);
      run_rows();
    }
  }

 private:
  static constexpr int64_t kKUnit = 128;  // K blocks start at multiples of the scale blocks
  static constexpr int64_t kMr = Tile::kMr;
  static constexpr int64_t kNr = Tile::kNr;
  static constexpr int64_t kPanelElems = (Isa::template k_block<Tile> + kKUnit + kKSlack + 2) * kNr;
  static constexpr int64_t kTileElems = kMr * kNr;
  static constexpr int64_t kMaxWaitingRows = 512 / kMr * kMr;

  void run_rows() {
    const int64_t j_begin = round_down(n0_, kNr);
    int64_t chunk = round_up(n1_ - j_begin, kNr);
    if (sums_wait_) chunk = at_most(chunk, round_down(kSumElems / round_up(rows_, kMr), kNr));
    for (int64_t j = j_begin; j < n1_; j += chunk) run_chunk(j, at_most(j + chunk, n1_));
  }

  void run_chunk(int64_t j_begin, int64_t j_end) {
    KPlace at{0, 0};
    bool first = true;
    do {
      const KPlace end = next(at);
      k_ = block_k(at, end);
      first_ = first && !job_.accumulate;
      last_ = end.term == job_.n_terms;
      pack_a(at, end);
      for (int64_t j0 = j_begin; j0 < j_end; j0 += kNr)
        run_panel(at, end, j0, (j0 - j_begin) / kNr);
      at = end;
      first = false;
    } while (at.term < job_.n_terms);
  }

  // The end of the K block that starts at `at`.
  KPlace next(KPlace at) const {
    int64_t used = 0;
    while (at.term < job_.n_terms) {
      const int64_t rest = job_.terms[at.term].k - at.k;
      if (rest <= k_limit_ - used + kKSlack) {
        used += even(rest);
        at = KPlace{at.term + 1, 0};
        continue;
      }
      const int64_t taken = round_down(k_limit_ - used, kKUnit);
      if (taken > 0) at.k += taken;
      break;
    }
    return at;
  }

  // f(term, k0, k, offset) for the parts of a K block; offset: its first k in the block.
  template <class F>
  int64_t for_each_part(KPlace at, KPlace end, F f) const {
    int64_t offset = 0;
    for (; at.term < end.term || at.k < end.k; at = KPlace{at.term + 1, 0}) {
      const GemmTerm& term = job_.terms[at.term];
      const int64_t k = (at.term < end.term ? term.k : end.k) - at.k;
      f(term, at.k, k, offset);
      offset += even(k);
      if (at.term == end.term) break;
    }
    return offset;
  }
  int64_t block_k(KPlace at, KPlace end) const {
    return for_each_part(at, end, [](const GemmTerm&, int64_t, int64_t, int64_t) {});
  }

  void pack_a(KPlace at, KPlace end) {
    const int64_t panel = static_cast<int64_t>(Tile::a_panel_elems(k_));
    for_each_part(at, end, [&](const GemmTerm& term, int64_t k0, int64_t k, int64_t offset) {
      if (term.a.elem == Elem::kF32) {
        pack_a_part<float>(term, k0, k, a_ + offset * kMr, panel);
      } else {
        pack_a_part<Bf16>(term, k0, k, a_ + offset * kMr, panel);
      }
    });
  }
  template <class T>
  void pack_a_part(const GemmTerm& term, int64_t k0, int64_t k, Operand* dst, int64_t panel) {
    const T* src = static_cast<const T*>(term.a.data);
    const int64_t ld = term.a.ld;
    // Part by part of k: a line of a transposed A holds the rows of several panels.
    const int64_t part = term.a_transposed ? kTransposeBlock : k;
    for (int64_t kk = 0; kk < k; kk += part) {
      const int64_t count = at_most(part, k - kk);
      for (int64_t i = 0; i < rows_; i += kMr) {
        const int valid = static_cast<int>(at_most(kMr, rows_ - i));
        Operand* out = dst + i / kMr * panel + kk * kMr;
        if (term.a_transposed) {
          Tile::pack_a_t(src + (k0 + kk) * ld + m0_ + i, ld, valid, count, out);
        } else {
          Tile::pack_a(src + (m0_ + i) * ld + k0 + kk, ld, valid, count, out);
        }
      }
    }
  }

  void run_panel(KPlace at, KPlace end, int64_t j0, int64_t index) {
    const Operand* b = make_panel(at, end, j0);
    const int left = static_cast<int>(j0 < n0_ ? n0_ - j0 : 0);
    const int right = static_cast<int>(at_most(kNr, n1_ - j0));
    const int64_t panel = static_cast<int64_t>(Tile::a_panel_elems(k_));
    float* sums = sums_ + index * round_up(rows_, kMr) * kNr;
    for (int64_t i = 0; i < rows_; i += kMr) {
      const int mr = static_cast<int>(at_most(kMr, rows_ - i));
      const Operand* a = a_ + i / kMr * panel;
      if (job_.c.elem == Elem::kF32) {
        mul_to_f32(mr, left, right, a, b,
                   static_cast<float*>(job_.c.data) + (m0_ + i) * job_.c.ld + j0, j0);
      } else {
        float* tile = sums_wait_ ? sums + i * kNr : tile_;
        Tile::mul(mr, static_cast<int>(kNr), k_, a, b, tile, kNr, !first_);
        if (last_) store_bf16(mr, left, right, tile, m0_ + i, j0);
      }
    }
  }

  const Operand* make_panel(KPlace at, KPlace end, int64_t j0) {
    const bool one_part = at.term == end.term || (at.term + 1 == end.term && end.k == 0);
    if (one_part && at.term < job_.n_terms) {
      const Operand* direct = Isa::template direct_panel<Tile>(job_.terms[at.term], j0, at.k);
      if (direct != nullptr) return direct;
    }
    for_each_part(at, end, [&](const GemmTerm& term, int64_t k0, int64_t k, int64_t offset) {
      Isa::template make_panel<Tile>(term, job_.n, j0, k0, k, b_ + offset * kNr);
    });
    return b_;
  }

  // c: C at (row, j0); columns [left, right) of the panel are ours.
  void mul_to_f32(int mr, int left, int right, const Operand* a, const Operand* b, float* c,
                  int64_t j0) {
    const int64_t ldc = job_.c.ld;
    if (left == 0) {
      Tile::mul(mr, right, k_, a, b, c, ldc, !first_);
    } else {
      if (!first_) load_tile<kNr>(mr, right - left, c + left, ldc, tile_ + left);
      for (int i = 0; i < mr && !first_; ++i)
        memset(tile_ + i * kNr, 0, sizeof(float) * static_cast<size_t>(left));
      Tile::mul(mr, static_cast<int>(kNr), k_, a, b, tile_, kNr, !first_);
      store_tile<kNr>(mr, right - left, tile_ + left, c + left, ldc);
    }
    if (!last_ || job_.bias == nullptr) return;
    for (int i = 0; i < mr; ++i) finish_row(c + i * ldc, left, right, j0, c + i * ldc);
  }

  void store_bf16(int mr, int left, int right, const float* tile, int64_t row, int64_t j0) {
    Bf16* out = static_cast<Bf16*>(job_.c.data) + row * job_.c.ld + j0;
    for (int i = 0; i < mr; ++i) finish_row(tile + i * kNr, left, right, j0, out + i * job_.c.ld);
  }

  // out[j] = sum[j] + bias for columns [left, right) of the panel at j0.
  template <class T>
  void finish_row(const float* sum, int left, int right, int64_t j0, T* out) {
    using V = typename Isa::V;
    const float* bias = job_.bias == nullptr ? nullptr : job_.bias + j0;
    int j = left;
    for (; j + V::kLanes <= right; j += V::kLanes) {
      const V x = V::load(sum + j);
      (bias == nullptr ? x : x + V::load(bias + j)).store(out + j);
    }
    if (j == right) return;
    const V x = V::load_part(sum + j, right - j);
    (bias == nullptr ? x : x + V::load_part(bias + j, right - j)).store_part(out + j, right - j);
  }

  const GemmJob& job_;
  int64_t n0_, n1_;
  Operand* a_;
  Operand* b_;
  float* sums_;
  float* tile_;
  int64_t k_limit_;
  bool sums_wait_;
  // The row block and K block under way.
  int64_t m0_ = 0, rows_ = 0, k_ = 0;
  bool first_ = true, last_ = false;
};

}  // namespace
}  // namespace loongforge::kernels
