// What an ISA contributes to gemm: see gemm.h for the meaning of each function.
#pragma once

#include "kernels/gemm.h"

namespace loongforge::kernels {

struct GemmTable {
  size_t (*packed_weight_bytes)(Elem elem, int64_t n, int64_t k) noexcept;
  void (*pack_weight_rows)(const PackedWeight& w, const void* src, int64_t ld, int64_t row0,
                           int64_t row1) noexcept;
  void (*pack_nf4_rows)(const PackedWeight& w, const uint8_t* codes, int64_t ld_codes,
                        const float* absmax, int64_t ld_absmax, int64_t row0,
                        int64_t row1) noexcept;
  void (*gather_weight_rows)(const PackedWeight& w, const int32_t* rows, int64_t count,
                             MatOut out) noexcept;
  size_t (*scratch_bytes)() noexcept;
  void (*steps)(Precision precision, int64_t* m_step, int64_t* n_step) noexcept;
  void (*gemm)(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
               void* scratch) noexcept;
};

}  // namespace loongforge::kernels
