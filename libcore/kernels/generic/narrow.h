// Products of few columns, as adapters of a low rank bring. Isa and Tile: see gemm.h.
#pragma once

#include "kernels/generic/gemm.h"
#include "kernels/generic/strided.h"

namespace loongforge::kernels {
namespace {

// Rows of A that stand in memory need not be turned for so few columns: they are made operands
// where they are and broadcast from there.
template <class Isa, class Tile>
class NarrowRows {
 public:
  static bool fits(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const int64_t n = n1 - n0;
    // With half of a wide register's columns empty the other way is faster.
    if (kLanes == 16 && n <= kLanes / 2) return false;
    if (n <= 0 || n > kMaxColumns || n0 % kNr != 0 || m1 - m0 < kLeastRows) return false;
    int64_t k = 0;
    for (int t = 0; t < job.n_terms; ++t) {
      if (job.terms[t].a_transposed) return false;
      k += even(job.terms[t].k);
    }
    return k > 0 && k * kNr * static_cast<int64_t>(sizeof(Operand)) <=
                        kSumElems * static_cast<int64_t>(sizeof(float));
  }

  NarrowRows(const GemmJob& job, int64_t n0, int64_t n1, void* scratch)
      : job_(job),
        n0_(n0),
        cols_(static_cast<int>(n1 - n0)),
        vecs_((cols_ + kLanes - 1) / kLanes),
        a_(static_cast<Operand*>(scratch)),
        b_(reinterpret_cast<Operand*>(GemmPiece<Isa, Tile>::sums_of(scratch))) {
    for_each_block([&](const GemmTerm& term, int64_t k0, int64_t k, int64_t at) {
      Isa::template make_panel<Tile>(term, job.n, n0, k0, k, b_ + at * kNr);
    });
  }

  void run(int64_t m0, int64_t m1) {
    for (int64_t i = m0; i < m1; i += kRows) {
      const int64_t rows = at_most(kRows, m1 - i);
      alignas(64) float sums[kRows * kNr] = {};
      bool from_c = job_.accumulate;
      if (from_c)
        load_tile<kNr>(static_cast<int>(rows), cols_,
                       static_cast<const float*>(job_.c.data) + i * job_.c.ld + n0_, job_.c.ld,
                       sums);
      for_each_block([&](const GemmTerm& term, int64_t k0, int64_t k, int64_t at) {
        if (term.a.elem == Elem::kF32) {
          load_rows<float>(term, i, rows, k0, k);
        } else {
          load_rows<Bf16>(term, i, rows, k0, k);
        }
        Tile::mul_narrow(vecs_, (k + 1) / 2, by_rows(a_), b_ + at * kNr, sums, kNr, from_c);
        from_c = true;
      });
      for (int64_t r = 0; r < rows; ++r) finish_row(sums + r * kNr, i + r);
    }
  }

 private:
  using Operand = typename Tile::Operand;
  using V = typename Isa::V;
  static constexpr int kNr = Tile::kNr;
  static constexpr int kLanes = Tile::Tiles::kNarrowLanes;
  static constexpr int64_t kMaxColumns = Tile::Tiles::kMaxVecs * kLanes;
  static constexpr int64_t kLeastRows = 64;
  static constexpr int64_t kRows = kNarrowRows;
  static constexpr int64_t kBlock = 512;  // of K
  static constexpr int64_t kLd = kBlock + 16;

  // f(term, k0, k, at) for each block of the joined K, which starts at row `at` of B.
  template <class F>
  void for_each_block(F f) const {
    int64_t at = 0;
    for (int t = 0; t < job_.n_terms; ++t) {
      const GemmTerm& term = job_.terms[t];
      for (int64_t k0 = 0; k0 < term.k; k0 += kBlock) {
        const int64_t k = at_most(kBlock, term.k - k0);
        f(term, k0, k, at);
        at += even(k);
      }
    }
  }

  static StridedA by_rows(const float* a) { return {a, kLd, 2, 1, 0}; }
  static StridedA by_rows(const Bf16* a) { return {a, kLd / 2, 1, 0, 0}; }

  template <class T>
  void load_rows(const GemmTerm& term, int64_t row, int64_t rows, int64_t k0, int64_t k) {
    for (int64_t r = 0; r < rows; ++r)
      Tile::load_operands(static_cast<const T*>(term.a.data) + (row + r) * term.a.ld + k0, k,
                          a_ + r * kLd);
    // Rows that nobody asked for are computed as well, from zeros.
    for (int64_t r = rows; r < kRows; ++r) memset(a_ + r * kLd, 0, sizeof(Operand) * kLd);
  }

  void finish_row(const float* sum, int64_t row) {
    if (job_.c.elem == Elem::kF32) {
      store_row(sum, static_cast<float*>(job_.c.data) + row * job_.c.ld + n0_);
    } else {
      store_row(sum, static_cast<Bf16*>(job_.c.data) + row * job_.c.ld + n0_);
    }
  }
  template <class T>
  void store_row(const float* sum, T* out) {
    for (int j = 0; j < cols_; j += V::kLanes) {
      const int n = static_cast<int>(at_most(V::kLanes, cols_ - j));
      V x = V::load_part(sum + j, n);
      if (job_.bias != nullptr) x = x + V::load_part(job_.bias + n0_ + j, n);
      x.store_part(out + j, n);
    }
  }

  const GemmJob& job_;
  int64_t n0_;
  int cols_, vecs_;
  Operand* a_;
  Operand* b_;
};

// A product of few columns leaves most of a panel empty, so C^T = B^T A^T is computed in its place:
// the same products in the same order.
template <class Isa, class Tile>
class NarrowPiece {
 public:
  static bool fits(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (n0 >= n1 || n1 - n0 > Tile::kNr / 2 || m1 - m0 < kLeastRows || job.n_terms > kMaxTerms)
      return false;
    for (int t = 0; t < job.n_terms; ++t) {
      const GemmTerm& term = job.terms[t];
      const bool plain = term.b_kind == GemmTerm::B::kPlain || term.b_kind == GemmTerm::B::kPlainT;
      if (!plain || (term.b.elem != Elem::kF32 && term.b.elem != Elem::kBf16)) return false;
    }
    return true;
  }

  static void run(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                  void* scratch) {
    // The sums of an fp32 C do not wait in scratch: their place holds C^T.
    float* turned = GemmPiece<Isa, Tile>::sums_of(scratch);
    const int64_t cols = n1 - n0;
    for (int64_t i0 = m0; i0 < m1; i0 += kRows) {
      const int64_t rows = at_most(kRows, m1 - i0);
      GemmTerm terms[kMaxTerms];
      for (int t = 0; t < job.n_terms; ++t) terms[t] = turn(job.terms[t], i0, n0);
      if (job.accumulate) {
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < cols; ++j)
            turned[j * kRows + i] =
                static_cast<const float*>(job.c.data)[(i0 + i) * job.c.ld + n0 + j];
      }
      const GemmJob swapped{
          cols,           rows,    terms,        job.n_terms, MatOut{turned, kRows, Elem::kF32},
          job.accumulate, nullptr, job.precision};
      GemmPiece<Isa, Tile>(swapped, 0, rows, scratch).run(0, cols);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          float x = turned[j * kRows + i];
          if (job.bias != nullptr) x += job.bias[n0 + j];
          const int64_t at = (i0 + i) * job.c.ld + n0 + j;
          if (job.c.elem == Elem::kF32) {
            static_cast<float*>(job.c.data)[at] = x;
          } else {
            static_cast<Bf16*>(job.c.data)[at].bits = operand_bits(x);
          }
        }
      }
    }
  }

 private:
  static constexpr int64_t kLeastRows = 64;
  static constexpr int64_t kRows = 1024;
  static constexpr int kMaxTerms = 8;

  // B^T as A, rows [i0, ..) of A as the columns of B.
  static GemmTerm turn(const GemmTerm& term, int64_t i0, int64_t n0) {
    const bool plain = term.b_kind == GemmTerm::B::kPlain;
    GemmTerm t{};
    t.a = moved(term.b, plain ? n0 : n0 * term.b.ld);
    t.a_transposed = plain;
    t.b_kind = term.a_transposed ? GemmTerm::B::kPlain : GemmTerm::B::kPlainT;
    t.b = moved(term.a, term.a_transposed ? i0 : i0 * term.a.ld);
    t.k = term.k;
    return t;
  }
  static Mat moved(Mat m, int64_t elems) {
    m.data = static_cast<const uint8_t*>(m.data) + elems * elem_bytes(m.elem);
    return m;
  }
};

template <class Isa, class Tile>
void gemm_piece(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void* scratch) {
  if (NarrowRows<Isa, Tile>::fits(job, m0, m1, n0, n1)) {
    NarrowRows<Isa, Tile>(job, n0, n1, scratch).run(m0, m1);
  } else if (NarrowPiece<Isa, Tile>::fits(job, m0, m1, n0, n1)) {
    NarrowPiece<Isa, Tile>::run(job, m0, m1, n0, n1, scratch);
  } else {
    GemmPiece<Isa, Tile>(job, n0, n1, scratch).run(m0, m1);
  }
}

}  // namespace
}  // namespace loongforge::kernels
