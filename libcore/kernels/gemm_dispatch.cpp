#include "kernels/dispatch.h"
#include "kernels/gemm.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(GemmTable, kGemmTable)

namespace {

constexpr int64_t kLeastPacked = 128 << 10;  // a K block of some rows fits in any case
int64_t g_packed_bytes = INT64_MAX;

}  // namespace

void gemm_set_cache(int64_t l2_bytes) noexcept {
  g_packed_bytes = l2_bytes <= 0 ? INT64_MAX : l2_bytes < kLeastPacked ? kLeastPacked : l2_bytes;
}

int64_t gemm_packed_bytes() noexcept { return g_packed_bytes; }

size_t packed_weight_bytes(Elem elem, int64_t n, int64_t k) noexcept {
  return LF_TABLE(kGemmTable).packed_weight_bytes(elem, n, k);
}

void pack_weight_rows(const PackedWeight& w, const void* src, int64_t ld, int64_t row0,
                      int64_t row1) noexcept {
  LF_TABLE(kGemmTable).pack_weight_rows(w, src, ld, row0, row1);
}

void pack_nf4_rows(const PackedWeight& w, const uint8_t* codes, int64_t ld_codes,
                   const float* absmax, int64_t ld_absmax, int64_t row0, int64_t row1) noexcept {
  LF_TABLE(kGemmTable).pack_nf4_rows(w, codes, ld_codes, absmax, ld_absmax, row0, row1);
}

void gather_weight_rows(const PackedWeight& w, const int32_t* rows, int64_t count,
                        MatOut out) noexcept {
  LF_TABLE(kGemmTable).gather_weight_rows(w, rows, count, out);
}

size_t gemm_scratch_bytes() noexcept { return LF_TABLE(kGemmTable).scratch_bytes(); }

void gemm_steps(Precision precision, int64_t* m_step, int64_t* n_step) noexcept {
  LF_TABLE(kGemmTable).steps(precision, m_step, n_step);
}

void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
          void* scratch) noexcept {
  LF_TABLE(kGemmTable).gemm(job, m0, m1, n0, n1, scratch);
}

namespace {

constexpr OpRow kFp8[] = {
    {"fp8_pack_weight", "codes into the order that products read", kUndirected, kBothFormats,
     LF_IN_TABLE(kGemmTable, pack_weight_rows)},
    {"fp8_gather_rows", "rows of a packed weight by index: embedding", kForwardOnly, kBothFormats,
     LF_IN_TABLE(kGemmTable, gather_weight_rows)},
    {"fp8_linear", "bf16 by FP8 codes: linear layers, recipe saved", kAllDirections, kBothFormats,
     LF_IN_TABLE(kGemmTable, gemm)},
    {"fp8_linear_lora", "the same with the adapter as a second term", kThroughLinear, kBothFormats,
     LF_IN_TABLE(kGemmTable, gemm)},
    {"fp8_gemv", "up to four rows, weights decoded in registers: generation", kForwardOnly,
     kBothFormats, LF_IN_TABLE(kGemmTable, gemm)},
    {"loongblas_fp8_gemm", "codes by codes, native FP8 where the CPU has it", kForwardOnly,
     kBothFormats, LF_IN_TABLE(kGemmTable, gemm)},
    {"loongblas_fp8_gemm", "codes by codes, native FP8 where the CPU has it", kBackwards,
     kAllFormats, LF_IN_TABLE(kGemmTable, gemm)},
    {"fp8_addmm", "beta C + alpha A B of codes", kForwardOnly, kBothFormats,
     LF_IN_TABLE(kGemmTable, gemm)},
    {"fp8_addmm", "beta C + alpha A B of codes", kBackwards, kAllFormats,
     LF_IN_TABLE(kGemmTable, gemm)},
};

}  // namespace

extern const Family kGemmFamily = {"gemm", LF_TABLE_FOR(kGemmTable), kFp8};

}  // namespace loongforge::kernels
