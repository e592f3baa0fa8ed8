// The instruction sets: what the CPU was found to have, what this build holds, what of it can be
// used here, what is used. One report for `loongforge debug --isa` and `version --json`. Pure
// functions but for the look at the CPU.
#pragma once

#include <string>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::cli {

// isa_found (CPU features, as isa_features() lists them), isas_available (array), isa_used.
LF_API support::Json isa_json();
// The same as lines "found      avx2 fma ..."; report: what isa_json() returned.
LF_API std::string isa_text(const support::Json& report);

}  // namespace loongforge::cli
