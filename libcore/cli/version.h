// What `loongforge version` and --version print. Pure functions but for the look at the CPU.
#pragma once

#include <string>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::cli {

LF_API const char* version_number();  // "0.4.0"
LF_API const char* machine_name();    // "x86_64", "LoongArch64"
LF_API std::string version_line();    // "v0.4.0 (x86_64)"
// version, machine, what isa_json() has (isa_report.h), compiler, build_type, libraries.
LF_API support::Json version_json();

}  // namespace loongforge::cli
