// gemm's loops, once for every ISA. K is the terms' k, one after another, cut into blocks. Two
// orders:
//
//   whole K: A of a row block is packed for all of K; panel by panel of B's columns, K block by K
//   block: make the panel of
//     B, multiply all row tiles by it. The sums of a panel stay in cache, and weights are read in
//     one stream.
//   K blocks: where too few rows fit that way. K block by K block: pack A of a row block for it;
//   panel by panel: make the
//     panel, multiply. Sums wait in C, or for a bf16 C in scratch, a column chunk at a time.
//
// Isa provides: V (vec.h); a_bytes, of packed A; k_block<Tile>, the K block's length, a multiple of
// 128, and
//   short_k_block<Tile> for few rows, whose panel stays in the first cache;
//   direct_panel<Tile>(term, j0, k0): B panel that already stands in the weight in operand order,
//   or null; make_panel<Tile>(term, n, j0, k0, k, dst): B columns [j0, j0 + kNr), rows [k0, k0 + k)
//   of one term; columns >= n are 0; few_rows, fuses<Tile>(term), mul_few<Tile>(rows, wide, term,
//   j0, k0, k, a, c, ldc, accumulate): the product of up to
//     few_rows rows with that panel (wide: up to wide_rows, and the next panel's beside it), made
//     in registers only, for the terms that fuses() names;
//   ask_ahead<Tile>(term, j0, k0, k, part, parts, pairs): prefetches a part of what that panel is
//     made of, or says what a tile of so many pairs of k should.
// j0 is a multiple of kNr, k0 of 128.
#pragma once

#include <stddef.h>

#include "kernels/gemm.h"
#include "kernels/generic/pack.h"
#include "kernels/generic/register_tile.h"

namespace loongforge::kernels {
namespace {

[[maybe_unused]] inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
[[maybe_unused]] inline int64_t round_down(int64_t x, int64_t to) { return x / to * to; }
[[maybe_unused]] inline int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
[[maybe_unused]] inline int64_t even(int64_t k) { return round_up(k, 2); }

inline constexpr int64_t kSumElems = int64_t{1} << 20;  // fp32 sums that wait for the next K block
inline constexpr int64_t kManyRows = 240;               // this many rows are worth a panel's making
inline constexpr int64_t kShortRows = 96;       // fewer: the panel is kept within the first cache
inline constexpr int64_t kKSlack = 64;          // a term's end this long joins a block that is full
inline constexpr int64_t kTransposeBlock = 32;  // rows of a transposed A that stay in L1

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

  static float* sums_of(void* scratch) {
    return reinterpret_cast<float*>(static_cast<uint8_t*>(scratch) + kABytes +
                                    kPanelElems * sizeof(Operand));
  }

  GemmPiece(const GemmJob& job, int64_t n0, int64_t n1, void* scratch)
      : job_(job), n0_(n0), n1_(n1) {
    auto* p = static_cast<uint8_t*>(scratch);
    a_ = reinterpret_cast<Operand*>(p);
    b_ = reinterpret_cast<Operand*>(p + kABytes);
    sums_ = sums_of(scratch);
    tile_ = sums_ + kSumElems;
    for (int t = 0; t < job.n_terms; ++t) k_total_ += even(job.terms[t].k);
  }

  void run(int64_t m0, int64_t m1) {
    if (m0 >= m1 || n0_ >= n1_) return;
    const int64_t m = m1 - m0;
    // The rows that fit with all of K, whose parts may each be padded to even.
    int64_t limit = rows_that_fit(k_total_);
    whole_k_ = limit >= at_most(round_up(m, kMr), kManyRows);
    set_k_limit(whole_k_ && m > Isa::few_rows && m < kShortRows ? Isa::template short_k_block<Tile>
                                                                : Isa::template k_block<Tile>);
    if (!whole_k_) limit = rows_that_fit(k_limit_ + kKSlack + 2);
    if (sums_wait_) limit = at_most(limit, kMaxWaitingRows);
    const int64_t pieces = (m + limit - 1) / limit;
    const int64_t step = round_up((m + pieces - 1) / pieces, kMr);
    for (m0_ = m0; m0_ < m1; m0_ += step) {
      rows_ = at_most(step, m1 - m0_);
      tiles_ = (rows_ + kMr - 1) / kMr;
      if (whole_k_) {
        run_whole_k();
      } else {
        run_k_blocks();
      }
    }
  }

 private:
  static constexpr int64_t kABytes = Isa::a_bytes;
  static constexpr int64_t kKUnit = 128;  // K blocks start at multiples of the scale blocks
  static constexpr int64_t kMr = Tile::kMr;
  static constexpr int64_t kNr = Tile::kNr;
  static constexpr int64_t kPanelElems = (Isa::template k_block<Tile> + kKUnit + kKSlack + 2) * kNr;
  static constexpr int64_t kTileElems = kMr * kNr;
  static constexpr int64_t kMaxWaitingRows = 512 / kMr * kMr;

  struct Columns {
    int64_t j0;       // the panel's first column
    int left, right;  // [left, right) of it are ours
  };
  struct Sums {
    float* c;
    int64_t ld;
  };

  static int64_t rows_that_fit(int64_t k) {
    const int64_t bytes = at_most(kABytes, gemm_packed_bytes());
    return k == 0 ? kABytes : bytes / (k * static_cast<int64_t>(sizeof(Operand))) / kMr * kMr;
  }

  // The first row of a row tile. Tiles are of about equal size: a last one of one or two rows would
  // leave the multipliers waiting for their sums.
  int64_t tile_row(int64_t tile) const { return tile * rows_ / tiles_; }
  int tile_rows(int64_t tile) const {
    return static_cast<int>(tile_row(tile + 1) - tile_row(tile));
  }

  // Cuts K into equal blocks of at most kc, or a little more.
  void set_k_limit(int64_t kc) {
    const int64_t blocks = k_total_ > kc + kKSlack ? (k_total_ - kKSlack + kc - 1) / kc : 1;
    k_limit_ = round_up(blocks > 1 ? (k_total_ - kKSlack + blocks - 1) / blocks : k_total_, kKUnit);
    if (k_limit_ < kKUnit) k_limit_ = kKUnit;
    sums_wait_ = job_.c.elem == Elem::kBf16 && blocks > 1;
  }

  void run_whole_k() {
    a_panel_ = static_cast<int64_t>(Tile::a_panel_elems(k_total_));
    const KPlace all{job_.n_terms, 0};
    pack_a(KPlace{0, 0}, all);
    const bool wide = rows_ <= Isa::wide_rows && all_fused();
    for (int64_t j0 = round_down(n0_, kNr); j0 < n1_;) {
      // Both of one scale block.
      const bool two = wide && j0 % (2 * kNr) == 0 && j0 >= n0_ && j0 + 2 * kNr <= n1_;
      KPlace at{0, 0};
      const Operand* a = a_;
      do {
        const KPlace end = next(at);
        start_block(at, end);
        if (two) {
          run_two_panels(at, end, j0, a);
        } else {
          run_panel(at, end, j0, a, sums_);
        }
        a += k_ * kMr;
        at = end;
      } while (at.term < job_.n_terms);
      j0 += two ? 2 * kNr : kNr;
    }
  }

  void run_k_blocks() {
    const int64_t j_begin = round_down(n0_, kNr);
    int64_t chunk = round_up(n1_ - j_begin, kNr);
    if (sums_wait_) chunk = at_most(chunk, round_down(kSumElems / round_up(rows_, kMr), kNr));
    for (int64_t j = j_begin; j < n1_; j += chunk) {
      const int64_t j_end = at_most(j + chunk, n1_);
      KPlace at{0, 0};
      do {
        const KPlace end = next(at);
        start_block(at, end);
        a_panel_ = static_cast<int64_t>(Tile::a_panel_elems(k_));
        pack_a(at, end);
        float* sums = sums_;
        for (int64_t j0 = j; j0 < j_end; j0 += kNr, sums += round_up(rows_, kMr) * kNr)
          run_panel(at, end, j0, a_, sums);
        at = end;
      } while (at.term < job_.n_terms);
    }
  }

  void start_block(KPlace at, KPlace end) {
    k_ = for_each_part(at, end, [](const GemmTerm&, int64_t, int64_t, int64_t) {});
    first_ = at.term == 0 && at.k == 0 && !job_.accumulate;
    last_ = end.term == job_.n_terms;
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
  void pack_a(KPlace at, KPlace end) {
    for_each_part(at, end, [&](const GemmTerm& term, int64_t k0, int64_t k, int64_t offset) {
      if (term.a.elem == Elem::kF32) {
        pack_a_part<float>(term, k0, k, a_ + offset * kMr);
      } else {
        pack_a_part<Bf16>(term, k0, k, a_ + offset * kMr);
      }
    });
  }
  template <class T>
  void pack_a_part(const GemmTerm& term, int64_t k0, int64_t k, Operand* dst) {
    const T* src = static_cast<const T*>(term.a.data);
    const int64_t ld = term.a.ld;
    // Part by part of k: a line of a transposed A holds the rows of several panels.
    const int64_t part = term.a_transposed ? kTransposeBlock : k;
    for (int64_t kk = 0; kk < k; kk += part) {
      const int64_t count = at_most(part, k - kk);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        const int64_t i = tile_row(tile);
        const int valid = tile_rows(tile);
        Operand* out = dst + tile * a_panel_ + kk * kMr;
        if (term.a_transposed) {
          Tile::pack_a_t(src + (k0 + kk) * ld + m0_ + i, ld, valid, count, out);
        } else {
          Tile::pack_a(src + (m0_ + i) * ld + k0 + kk, ld, valid, count, out);
        }
      }
    }
  }

  // a: packed A of this K block. sums: of this panel, where they wait.
  void run_panel(KPlace at, KPlace end, int64_t j0, const Operand* a, float* sums) {
    const Columns cols{j0, static_cast<int>(j0 < n0_ ? n0_ - j0 : 0),
                       static_cast<int>(at_most(kNr, n1_ - j0))};
    const bool few = rows_ <= Isa::few_rows && has_fused_part(at, end);
    const Operand* b = few ? nullptr : make_panel(at, end, j0);
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const int64_t i = tile_row(tile);
      const int mr = tile_rows(tile);
      const Sums t = start_tile(mr, m0_ + i, cols, sums + i * kNr);
      if (few) {
        mul_few(at, end, mr, false, j0, a, t);
      } else {
        Tile::mul(mr, static_cast<int>(kNr), k_, a + tile * a_panel_, b, t.c, t.ld, !first_,
                  ask_ahead(at, end, j0, tile));
      }
      finish_tile(mr, m0_ + i, cols, t);
    }
  }

  // Whether every term's B is decoded in registers.
  bool all_fused() const {
    for (int t = 0; t < job_.n_terms; ++t)
      if (job_.terms[t].k <= 0 || !Isa::template fuses<Tile>(job_.terms[t])) return false;
    return job_.n_terms > 0;
  }

  // The few rows' sums of two whole panels: in C, or side by side in scratch.
  void run_two_panels(KPlace at, KPlace end, int64_t j0, const Operand* a) {
    const bool direct = job_.c.elem == Elem::kF32;
    float* c = direct ? static_cast<float*>(job_.c.data) + m0_ * job_.c.ld + j0 : sums_;
    const Sums t{c, direct ? job_.c.ld : 2 * kNr};
    mul_few(at, end, static_cast<int>(rows_), true, j0, a, t);
    const Columns cols{j0, 0, 2 * kNr};
    if (!last_ || (direct && job_.bias == nullptr)) return;
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t place = (m0_ + i) * job_.c.ld + j0;
      if (direct) {
        finish_row(t.c + i * t.ld, cols, static_cast<float*>(job_.c.data) + place);
      } else {
        finish_row(t.c + i * t.ld, cols, static_cast<Bf16*>(job_.c.data) + place);
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

  // A tile's share of the weight that the next panel is made of: while the multipliers work, memory
  // would have nothing to do.
  Ahead ask_ahead(KPlace at, KPlace end, int64_t j0, int64_t tile) const {
    if (k_ == 0) return {};
    KPlace next = at;
    if (whole_k_) next = end.term == job_.n_terms ? KPlace{0, 0} : end;
    if (!whole_k_ || end.term == job_.n_terms) j0 += kNr;
    const GemmTerm& term = job_.terms[next.term];
    const int64_t k = at_most(k_limit_, term.k - next.k);
    if (j0 >= n1_ || k <= 0) return {};
    return Isa::template ask_ahead<Tile>(term, j0, next.k, k, tile, tiles_, k_ / 2);
  }

  bool has_fused_part(KPlace at, KPlace end) const {
    bool fused = false;
    for_each_part(at, end, [&](const GemmTerm& term, int64_t, int64_t k, int64_t) {
      fused = fused || (k > 0 && Isa::template fuses<Tile>(term));
    });
    return fused;
  }

  // One row tile whose B is not worth a panel.
  void mul_few(KPlace at, KPlace end, int mr, bool wide, int64_t j0, const Operand* a, Sums t) {
    bool accumulate = !first_;
    for_each_part(at, end, [&](const GemmTerm& term, int64_t k0, int64_t k, int64_t offset) {
      if (k == 0) return;
      const Operand* a_part = a + offset * kMr;
      if (Isa::template fuses<Tile>(term)) {
        Isa::template mul_few<Tile>(mr, wide, term, j0, k0, k, a_part, t.c, t.ld, accumulate);
      } else {
        Isa::template make_panel<Tile>(term, job_.n, j0, k0, k, b_);
        Tile::mul(mr, static_cast<int>(kNr), k, a_part, b_, t.c, t.ld, accumulate);
      }
      accumulate = true;
    });
  }

  // Where a row tile's sums are kept during a K block: in C where whole tiles of fp32 fit there.
  Sums start_tile(int mr, int64_t row, Columns cols, float* waiting) {
    if (job_.c.elem == Elem::kBf16) return {sums_wait_ ? waiting : tile_, kNr};
    float* c = static_cast<float*>(job_.c.data) + row * job_.c.ld + cols.j0;
    if (cols.left == 0 && cols.right == kNr) return {c, job_.c.ld};
    if (!first_) {
      memset(tile_, 0, sizeof(float) * kTileElems);
      load_tile<kNr>(mr, cols.right - cols.left, c + cols.left, job_.c.ld, tile_ + cols.left);
    }
    return {tile_, kNr};
  }

  void finish_tile(int mr, int64_t row, Columns cols, Sums t) {
    if (job_.c.elem == Elem::kBf16) {
      if (!last_) return;
      Bf16* out = static_cast<Bf16*>(job_.c.data) + row * job_.c.ld + cols.j0;
      for (int i = 0; i < mr; ++i) finish_row(t.c + i * t.ld, cols, out + i * job_.c.ld);
      return;
    }
    float* out = static_cast<float*>(job_.c.data) + row * job_.c.ld + cols.j0;
    if (last_ && job_.bias != nullptr) {
      for (int i = 0; i < mr; ++i) finish_row(t.c + i * t.ld, cols, out + i * job_.c.ld);
    } else if (t.c == tile_) {
      store_tile<kNr>(mr, cols.right - cols.left, tile_ + cols.left, out + cols.left, job_.c.ld);
    }
  }

  // out[j] = sum[j] + bias for our columns of the panel.
  template <class T>
  void finish_row(const float* sum, Columns cols, T* out) {
    using V = typename Isa::V;
    const float* bias = job_.bias == nullptr ? nullptr : job_.bias + cols.j0;
    int j = cols.left;
    for (; j + V::kLanes <= cols.right; j += V::kLanes) {
      const V x = V::load(sum + j);
      (bias == nullptr ? x : x + V::load(bias + j)).store(out + j);
    }
    const int rest = cols.right - j;
    if (rest == 0) return;
    const V x = V::load_part(sum + j, rest);
    (bias == nullptr ? x : x + V::load_part(bias + j, rest)).store_part(out + j, rest);
  }

  const GemmJob& job_;
  int64_t n0_, n1_;
  Operand* a_;
  Operand* b_;
  float* sums_;
  float* tile_;
  int64_t k_total_ = 0, k_limit_ = 0;
  bool whole_k_ = false, sums_wait_ = false;
  // The row block and K block under way.
  int64_t m0_ = 0, rows_ = 0, tiles_ = 0, k_ = 0, a_panel_ = 0;
  bool first_ = true, last_ = false;
};

}  // namespace
}  // namespace loongforge::kernels
