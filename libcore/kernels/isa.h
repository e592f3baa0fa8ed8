// Which instruction set the kernels use. Detection (cpu.h) once. Each kernel family has its own
// table (<family>_dispatch.cpp); all of them follow active_isa().
// Thread-safety: set_active_isa() only while no kernel runs (start of a command, tests).
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"
#include "kernels/cpu.h"

// The one list of vector instruction sets, in ascending order: of those that a processor can use,
// the last is the best. X(arg, NAME, value of Isa, folder of kernels/, features of cpu.h that the
// folder's code needs, all of them).
#define LF_VECTOR_ISAS(X, arg)                                                 \
  X(arg, AVX2, kAvx2, avx2, "avx2 fma f16c")                                   \
  X(arg, AVX512, kAvx512, avx512,                                              \
    "avx2 fma f16c avx512f avx512dq avx512bw avx512vl avx512vbmi avx512_bf16") \
  X(arg, LSX, kLsx, lsx, "lsx")                                                \
  X(arg, LASX, kLasx, lasx, "lsx lasx")

namespace loongforge::kernels {

#define LF_ISA_VALUE(arg, NAME, value, folder, needs) , value
enum class Isa : uint8_t { kScalar LF_VECTOR_ISAS(LF_ISA_VALUE, ) };
#undef LF_ISA_VALUE

LF_API const char* isa_name(Isa isa) noexcept;  // "scalar", "avx2", "avx512", "lsx", "lasx"
LF_API std::span<const Isa>
available_isas() noexcept;  // usable on this CPU and compiled in, scalar first
// ISAs that tests run: available_isas() and, where the CPU lacks AVX-512, kAvx512 when the emulated
// build is linked.
LF_API std::span<const Isa> testable_isas() noexcept;
LF_API bool isa_is_emulated(Isa isa) noexcept;
LF_API Isa active_isa() noexcept;              // the best of available_isas() until set
LF_API bool set_active_isa(Isa isa) noexcept;  // false: not testable here, nothing changed
LF_API bool parse_isa(const char* name, Isa* isa) noexcept;  // false: unknown name
LF_API std::span<const Isa> all_isas() noexcept;       // that there is a name for, scalar first
LF_API std::span<const Isa> compiled_isas() noexcept;  // in this build, usable here or not
LF_API bool isa_runs_on(const CpuFeatures& cpu, Isa isa) noexcept;  // whether it has what is needed
LF_API const CpuFeatures& cpu() noexcept;  // what this processor was found to have

}  // namespace loongforge::kernels
