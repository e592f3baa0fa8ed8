// The slot for native FP8: a table that a test puts there, a scalar model of what silicon would do,
// is what FP8 products then run.
#include "kernels/native_fp8.h"

#include "kernels/fp8_gemm.h"
#include "kernels/fp8_matrix.h"
#include "kernels/kernel_test.h"

namespace loongforge::kernels {
namespace {

using test::Fp8Matrix;
using test::PackedFp8;
using B = GemmTerm::B;

int calls = 0;

bool is_fp8(Elem e) { return e == Elem::kE4M3 || e == Elem::kE5M2; }

// Code values through the public decoders, products in float64, one rounding at the end.
double a_value(const GemmTerm& t, int64_t i, int64_t kk) {
  const int64_t row = t.a_transposed ? kk : i, col = t.a_transposed ? i : kk;
  const auto code = static_cast<const uint8_t*>(t.a.data)[row * t.a.ld + col];
  return std::ldexp(test::fp8_value(t.a.elem, code), t.a.exps[row * t.a.ld_exps + col / 128]);
}

bool model_takes(const GemmJob& job) noexcept {
  for (int t = 0; t < job.n_terms; ++t)
    if (!is_fp8(job.terms[t].a.elem) || job.terms[t].b_kind != B::kWeightT) return false;
  return job.n_terms > 0 && job.c.elem == Elem::kF32;
}

size_t model_scratch(const GemmJob& job) noexcept {
  return sizeof(float) * static_cast<size_t>(job.terms[0].k);
}

void model_gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                void* scratch) noexcept {
  ++calls;
  auto* w = static_cast<float*>(scratch);
  for (int64_t j = n0; j < n1; ++j) {
    const GemmTerm& t = job.terms[0];
    const auto row = static_cast<int32_t>(j);
    gather_weight_rows(*t.w, &row, 1, {w, t.k, Elem::kF32});
    for (int64_t i = m0; i < m1; ++i) {
      double sum = 0;
      for (int64_t kk = 0; kk < t.k; ++kk) sum += a_value(t, i, kk) * static_cast<double>(w[kk]);
      static_cast<float*>(job.c.data)[i * job.c.ld + j] = static_cast<float>(sum);
    }
  }
}

constexpr NativeFp8 kModel = {"model", [](const CpuFeatures& cpu) noexcept { return cpu.amx_fp8; },
                              model_takes, model_scratch, model_gemm};
constexpr NativeFp8 kOther = {"other", [](const CpuFeatures& cpu) noexcept { return cpu.avx10_2; },
                              model_takes, model_scratch, model_gemm};

struct UseNative {
  const NativeFp8* before = native_fp8();
  explicit UseNative(const NativeFp8* table) { set_native_fp8(table); }
  ~UseNative() { set_native_fp8(before); }
};

std::vector<float> product(const Fp8Matrix& x, const PackedWeight& w) {
  const GemmTerm term{x.view(), false, B::kWeightT, &w, {}, x.cols};
  std::vector<float> c(static_cast<size_t>(x.rows * w.n));
  const GemmJob job{x.rows, w.n,     &term,           1, {c.data(), w.n, Elem::kF32},
                    false,  nullptr, Precision::kBf16};
  AlignedBuffer scratch(loongblas_fp8_gemm_scratch_bytes(job));
  loongblas_fp8_gemm(job, 0, x.rows, 0, w.n, scratch.data());
  return c;
}

TEST_CASE("native FP8: none is compiled in, so none is used") { CHECK(native_fp8() == nullptr); }

TEST_CASE("native FP8: the table in the slot computes what it takes, on every ISA's weights") {
  std::mt19937 random(3);
  const Fp8Matrix x(20, 200, Elem::kE5M2, 1, &random), w(40, 200, Elem::kE4M3, 128, &random);
  for (const Isa isa : testable_isas()) {
    const test::UseIsa use(isa);
    const PackedFp8 packed(w);
    const std::vector<float> decoded = product(x, packed.w);
    calls = 0;
    const UseNative native(&kModel);
    const std::vector<float> got = product(x, packed.w);
    CHECK(calls == 1);
    size_t wrong = 0, equal = 0;
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t j = 0; j < w.rows; ++j) {
        double exact = 0, magnitude = 0;
        for (int64_t kk = 0; kk < x.cols; ++kk) {
          exact += x.get(i, kk) * w.get(j, kk);
          magnitude += std::fabs(x.get(i, kk) * w.get(j, kk));
        }
        const auto at = static_cast<size_t>(i * w.rows + j);
        wrong += !(std::fabs(got[at] - exact) <= 200 * 0x1p-24 * magnitude);
        equal += got[at] == decoded[at];
      }
    }
    CHECK(wrong == 0);
    CHECK(equal < got.size());  // another order of sums: this is not the decoding path
  }
}

TEST_CASE("native FP8: what the table refuses is decoded, and fp8_addmm asks it too") {
  std::mt19937 random(4);
  const Fp8Matrix dy(30, 40, Elem::kE5M2, 1, &random), w(40, 200, Elem::kE4M3, 128, &random);
  const PackedFp8 packed(w);
  const GemmTerm back{dy.view(), false, B::kWeight, &packed.w, {}, 40};
  const auto run = [&] {
    std::vector<float> c(30 * 200);
    const GemmJob job{30,    200,     &back,           1, {c.data(), 200, Elem::kF32},
                      false, nullptr, Precision::kBf16};
    AlignedBuffer scratch(loongblas_fp8_gemm_scratch_bytes(job));
    loongblas_fp8_gemm(job, 0, 30, 0, 200, scratch.data());
    return c;
  };
  const std::vector<float> want = run();
  calls = 0;
  const UseNative native(&kModel);
  CHECK(run() == want);
  CHECK(calls == 0);

  const Fp8Matrix x(30, 200, Elem::kE4M3, 1, &random);
  const GemmTerm forward{x.view(), false, B::kWeightT, &packed.w, {}, 200};
  std::vector<Bf16> c(30 * 40);
  const GemmJob job{30,    40,      &forward,        1, {c.data(), 40, Elem::kBf16},
                    false, nullptr, Precision::kBf16};
  AlignedBuffer scratch(fp8_addmm_scratch_bytes(job));
  fp8_addmm(job, 2.0f, 0.0f, 0, 30, 0, 40, scratch.data());
  CHECK(calls == 1);
}

TEST_CASE("native FP8: the first table whose instructions the processor has is chosen") {
  const NativeFp8* const tables[] = {&kOther, &kModel};
  CpuFeatures cpu;
  CHECK(choose_native_fp8(tables, 2, cpu) == nullptr);
  cpu.amx_fp8 = true;
  CHECK(choose_native_fp8(tables, 2, cpu) == &kModel);
  cpu.avx10_2 = true;
  CHECK(choose_native_fp8(tables, 2, cpu) == &kOther);
  CHECK(choose_native_fp8(tables, 0, cpu) == nullptr);
}

}  // namespace
}  // namespace loongforge::kernels
