// FP8 by FP8 against gemm() of the decoded operands, bit for bit; fp8_addmm against its formula.
// What they compute is compared with float64 in op_list_test.cpp.
#include "kernels/fp8_gemm.h"

#include <algorithm>

#include "kernels/fp8_matrix.h"
#include "kernels/kernel_test.h"
#include "kernels/quant.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::Fp8Matrix;
using test::PackedFp8;
using test::TestMatrix;
using test::UseIsa;
using B = GemmTerm::B;

struct Decoded {
  std::vector<Bf16> values;
  Mat view;
  Decoded(const Fp8Matrix& m) : values(static_cast<size_t>(m.rows * m.cols)) {
    dequantize_rows(m.view(), m.cols, {values.data(), m.cols, Elem::kBf16}, 0, m.rows);
    view = {values.data(), m.cols, Elem::kBf16};
  }
};

struct Piece {
  int64_t m0, m1, n0, n1;
};

// Every piece with scratch that holds NaN.
void run_fp8(const GemmJob& job, const std::vector<Piece>& pieces) {
  AlignedBuffer scratch(loongblas_fp8_gemm_scratch_bytes(job));
  for (const Piece& p : pieces) {
    std::memset(scratch.data(), 0xFF, scratch.size());
    loongblas_fp8_gemm(job, p.m0, p.m1, p.n0, p.n1, scratch.data());
  }
}

std::vector<Piece> cut(int64_t m, int64_t n) {
  const int64_t a = m / 3, b = m - m / 5, c = n / 2;
  std::vector<Piece> pieces;
  for (const auto& [m0, m1] : {std::pair{int64_t{0}, a}, {a, b}, {b, m}})
    for (const auto& [n0, n1] : {std::pair{int64_t{0}, c}, {c, n}})
      pieces.push_back({m0, m1, n0, n1});
  return pieces;
}

// The same job with the operands as they are and decoded.
void compare(GemmJob job, const std::vector<GemmTerm>& codes, const std::vector<GemmTerm>& decoded,
             Elem c_elem, std::mt19937* random) {
  TestMatrix want(job.m, job.n, c_elem, job.n + 3), got = want;
  if (job.accumulate) {
    want.fill(random);
    got = want;
  }
  job.n_terms = static_cast<int>(codes.size());
  job.terms = decoded.data();
  job.c = want.out();
  AlignedBuffer scratch(gemm_scratch_bytes());
  gemm(job, 0, job.m, 0, job.n, scratch.data());
  job.terms = codes.data();
  const TestMatrix start = got;
  for (const auto& pieces : {std::vector<Piece>{{0, job.m, 0, job.n}}, cut(job.m, job.n)}) {
    got = start;
    job.c = got.out();
    run_fp8(job, pieces);
    CHECK((got.bytes() == want.bytes()));
  }
}

TEST_CASE("loongblas_fp8_gemm: bits of gemm of the decoded operands, any direction, any cut") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
      for (const int64_t m : {1, 65, 387}) {  // 387: more than are decoded at a time
        std::mt19937 random(static_cast<unsigned>(m));
        const int64_t n = 37, k = 131;
        const Fp8Matrix x(m, k, fp8, 1, &random), dy(m, n, Elem::kE5M2, 1, &random),
            w(n, k, Elem::kE4M3, 128, &random);
        const PackedFp8 packed(w);
        const Decoded x16(x), dy16(dy);
        std::vector<float> bias(static_cast<size_t>(std::max(n, k)), 0.25f);
        for (const Elem c : {Elem::kF32, Elem::kBf16}) {
          INFO("m ", m, " c ", static_cast<int>(c));
          const bool add = c == Elem::kF32;
          compare({m, n, nullptr, 0, {}, false, bias.data(), Precision::kBf16},
                  {{x.view(), false, B::kWeightT, &packed.w, {}, k}},
                  {{x16.view, false, B::kWeightT, &packed.w, {}, k}}, c, &random);
          compare({m, k, nullptr, 0, {}, add, nullptr, Precision::kBf16},
                  {{dy.view(), false, B::kWeight, &packed.w, {}, n}},
                  {{dy16.view, false, B::kWeight, &packed.w, {}, n}}, c, &random);
          compare({n, k, nullptr, 0, {}, add, nullptr, Precision::kBf16},
                  {{dy.view(), true, B::kPlain, nullptr, x.view(), m}},
                  {{dy16.view, true, B::kPlain, nullptr, x.view(), m}}, c, &random);
        }
      }
    }
  }
}

TEST_CASE("loongblas_fp8_gemm: terms of codes and of bf16 together, transposed and not") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    std::mt19937 random(5);
    const int64_t m = 300, n = 70, k = 130, r = 8, t = 41;
    const Fp8Matrix x(m, k, Elem::kE4M3, 1, &random), xt(t, m, Elem::kE5M2, 1, &random),
        w(n, k, Elem::kE5M2, 128, &random);
    TestMatrix h(m, r, Elem::kBf16), ht(r, m, Elem::kF32), b(r, n, Elem::kF32), c(t, n, Elem::kF32);
    for (TestMatrix* each : {&h, &ht, &b, &c}) each->fill(&random);
    const PackedFp8 packed(w);
    const Decoded x16(x), xt16(xt);
    const auto terms = [&](const Mat& a, const Mat& at) {
      return std::vector<GemmTerm>{{h.in(), false, B::kPlain, nullptr, b.in(), r},
                                   {a, false, B::kWeightT, &packed.w, {}, k},
                                   {at, true, B::kPlain, nullptr, c.in(), t},
                                   {ht.in(), true, B::kPlain, nullptr, b.in(), r}};
    };
    compare({m, n, nullptr, 0, {}, false, nullptr, Precision::kBf16}, terms(x.view(), xt.view()),
            terms(x16.view, xt16.view), Elem::kF32, &random);
    // Nothing of codes: gemm itself.
    compare({m, n, nullptr, 0, {}, true, nullptr, Precision::kBf16}, terms(x16.view, xt16.view),
            terms(x16.view, xt16.view), Elem::kF32, &random);
  }
}

TEST_CASE("loongblas_fp8_gemm: the smallest scales are flushed as operands are, NaN stays NaN") {
  std::mt19937 random(6);
  Fp8Matrix x(4, 128, Elem::kE5M2, 1, &random);
  const Fp8Matrix w(16, 128, Elem::kE4M3, 128, &random);
  for (int8_t& e : x.exps) e = kMinScaleExp;
  std::fill_n(x.codes.begin(), x.ld, uint8_t{0x01});  // row 0: 2^-16 * 2^-41 is under 2^-55
  x.codes[static_cast<size_t>(2 * x.ld + 5)] = 0x7F;
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    const PackedFp8 packed(w);
    std::vector<float> c(4 * 16, -1.0f);
    const GemmTerm term{x.view(), false, B::kWeightT, &packed.w, {}, 128};
    run_fp8({4, 16, &term, 1, {c.data(), 16, Elem::kF32}, false, nullptr, Precision::kBf16},
            {{0, 4, 0, 16}});
    for (size_t j = 0; j < 16; ++j) {
      CHECK(c[j] == 0.0f);
      CHECK(std::isfinite(c[16 + j]));
      CHECK(std::isnan(c[32 + j]));
    }
  }
}

TEST_CASE("fp8_addmm: alpha and beta as its contract rounds them, more than one block of sums") {
  std::mt19937 random(7);
  const int64_t m = 270, n = 2100, k = 12;
  const Fp8Matrix x(m, k, Elem::kE4M3, 1, &random), w(n, k, Elem::kE4M3, 128, &random);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    const PackedFp8 packed(w);
    const GemmTerm term{x.view(), false, B::kWeightT, &packed.w, {}, k};
    TestMatrix sums(m, n, Elem::kF32);
    run_fp8({m, n, &term, 1, sums.out(), false, nullptr, Precision::kBf16}, {{0, m, 0, n}});
    for (const Elem elem : {Elem::kF32, Elem::kBf16}) {
      for (const auto& [alpha, beta] : {std::pair{1.0f, 1.0f}, {0.3f, -0.7f}, {-2.5f, 0.0f}}) {
        TestMatrix c(m, n, elem, n + 3);
        c.fill(&random);
        if (beta == 0.0f)
          for (int64_t j = 0; j < n; ++j) c.set(3, j, NAN);
        const TestMatrix before = c;
        const GemmJob job{m, n, &term, 1, c.out(), false, nullptr, Precision::kBf16};
        AlignedBuffer scratch(fp8_addmm_scratch_bytes(job));
        std::memset(scratch.data(), 0xFF, scratch.size());
        for (const Piece& p : cut(m, n))
          fp8_addmm(job, alpha, beta, p.m0, p.m1, p.n0, p.n1, scratch.data());
        size_t wrong = 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const float product = alpha * sums.get(i, j), rest = beta * before.get(i, j);
            float want = beta == 0.0f ? product : product + rest;
            if (elem == Elem::kBf16) want = test::bf16_round(want);
            wrong += test::bits_of(c.get(i, j)) != test::bits_of(want);
          }
        }
        CHECK(wrong == 0);
        CHECK(c.surroundings_intact());
      }
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
