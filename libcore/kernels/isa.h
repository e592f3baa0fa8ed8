// Which instruction set the kernels use. Detection (cpu.h) once. Each kernel family
// has its own table
// (<family>_dispatch.cpp); all of them follow active_isa().
// Thread-safety: set_active_isa() only while no kernel runs (start of a command, tests).
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"
#include "kernels/cpu.h"

namespace loongforge::kernels {

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kLsx, kLasx };

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
LF_API std::span<const Isa> compiled_isas() noexcept;  // in this build, usable here or not
LF_API const CpuFeatures& cpu() noexcept;              // what this processor was found to have

}  // namespace loongforge::kernels
