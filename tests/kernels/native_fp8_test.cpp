// The slot for native FP8: a table that a test puts there, a scalar model of what silicon would do,
// is what FP8 products then run.
#include "kernels/native_fp8.h"

#include "kernels/fp8_gemm.h"
#include "kernels/fp8_matrix.h"
#include "kernels/kernel_test.h"
#include "kernels/native_model.h"

namespace loongforge::kernels {
namespace {

using test::Fp8Matrix;
using test::PackedFp8;
using test::UseNative;
using B = GemmTerm::B;

constexpr NativeFp8 kOther = {"other", [](const CpuFeatures& cpu) noexcept { return cpu.avx10_2; },
                              test::model_takes, test::model_scratch, test::model_gemm};

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
    const UseNative native(true);
    const std::vector<float> got = product(x, packed.w);
    CHECK(test::native_calls == 1);
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
  {
    const UseNative native(false);
    CHECK(run() == want);
    CHECK(test::native_calls == 0);
    CHECK(test::native_questions > 0);
  }
  const UseNative native(true);
  const GemmTerm narrow{back.b, false, B::kPlain, nullptr, back.b, 0};
  const GemmJob empty{0, 0, &narrow, 1, {nullptr, 0, Elem::kF32}, false, nullptr, Precision::kBf16};
  loongblas_fp8_gemm_scratch_bytes(empty);
  CHECK(test::native_questions == 0);  // nothing of codes: not asked

  const Fp8Matrix x(30, 200, Elem::kE4M3, 1, &random);
  const GemmTerm forward{x.view(), false, B::kWeightT, &packed.w, {}, 200};
  std::vector<Bf16> c(30 * 40);
  const GemmJob job{30,    40,      &forward,        1, {c.data(), 40, Elem::kBf16},
                    false, nullptr, Precision::kBf16};
  AlignedBuffer scratch(fp8_addmm_scratch_bytes(job));
  fp8_addmm(job, 2.0f, 0.0f, 0, 30, 0, 40, scratch.data());
  CHECK(test::native_calls == 1);
}

TEST_CASE("native FP8: the first table whose instructions the processor has is chosen") {
  const NativeFp8* const tables[] = {&kOther, &test::kNativeModel};
  CpuFeatures cpu;
  CHECK(choose_native_fp8(tables, 2, cpu) == nullptr);
  cpu.amx_fp8 = true;
  CHECK(choose_native_fp8(tables, 2, cpu) == &test::kNativeModel);
  cpu.avx10_2 = true;
  CHECK(choose_native_fp8(tables, 2, cpu) == &kOther);
  CHECK(choose_native_fp8(tables, 0, cpu) == nullptr);
}

}  // namespace
}  // namespace loongforge::kernels
