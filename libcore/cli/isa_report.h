// The instruction sets: what the processor has, what the system lets programs use, what this build
// holds and what the kernels run. One report for `loongforge version --json` and `loongforge debug
// --isa`. Thread-safety: pure functions but for the look at the processor and the environment.
#pragma once

#include <string>

#include "base/api.h"
#include "kernels/cpu.h"
#include "support/json.h"

namespace loongforge::cli {

// isa_found: [{name, present, enabled}], isas_compiled, isas_available, isa_used, isa_emulated,
// isa_override (LOONGFORGE_ISA or null), isa_families {family: isa}, native_fp8 (name or null),
// isa_advice (as below, or null).
LF_API support::Json isa_json();
// The same as lines "found      avx2 fma ..."; report: what isa_json() returned.
LF_API std::string isa_text(const support::Json& report);

// What it costs that LASX cannot be used, and where to switch it on; "" where it can, and on other
// machines.
LF_API std::string lasx_advice(kernels::LasxState state);

}  // namespace loongforge::cli
