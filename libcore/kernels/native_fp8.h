// The slot for processors that multiply FP8 numbers themselves (x86-64: AVX10.2, AMX-FP8;
// LoongArch: none announced). No table is compiled in today, so native_fp8() is null and
// loongblas_fp8_gemm decodes.
//
// A table's contract. It gets jobs as loongblas_fp8_gemm does (fp8_gemm.h) and may refuse any:
// takes() is asked for each, also before scratch_bytes(). What it computes: operands that are no
// codes rounded to bf16 as gemm() rounds them, every product exact, every sum in fp32 or wider and
// in any order, scales applied as powers of two, c and bias as in gemm.h. So its results are not
// bit-equal to the kernels' (DESIGN 4 takes them out of that promise), and lie within k * 2^-24 *
// sum |a * b| of the exact ones. A packed weight is in the byte order of the active ISA: a table
// belongs to the ISA folder whose order it reads.
//
// Thread-safety: set_native_fp8() only while no kernel runs; a table's functions as gemm().
#pragma once

#include <stddef.h>

#include "base/api.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"

namespace loongforge::kernels {

struct NativeFp8 {
  const char* name;
  bool (*runs_on)(const CpuFeatures& cpu) noexcept;  // the instructions are there and enabled
  bool (*takes)(const GemmJob& job) noexcept;
  size_t (*scratch_bytes)(const GemmJob& job) noexcept;
  void (*gemm)(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
               void* scratch) noexcept;
};

// The table in use: the first compiled one that runs on this processor, or what was set; null:
// none.
LF_API const NativeFp8* native_fp8() noexcept;
// Puts a table in its place (tests; a table that is tried on silicon before it is compiled in).
// Null: none.
LF_API void set_native_fp8(const NativeFp8* table) noexcept;
// Which of `tables` runs on `cpu`: the first one, or null.
LF_API const NativeFp8* choose_native_fp8(const NativeFp8* const* tables, size_t n,
                                          const CpuFeatures& cpu) noexcept;

}  // namespace loongforge::kernels
