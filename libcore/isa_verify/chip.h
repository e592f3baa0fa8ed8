// Which processor this is, on one line, for what is recorded on it: "GenuineIntel 06-8f-08 Intel(R)
// Xeon(R) ...", "LoongArch prid 0014c010 Loongson-3A5000". Thread-safety: reads CPUID or CPUCFG and
// /proc/cpuinfo.
#pragma once

#include <string>

#include "base/api.h"

namespace loongforge::isa_verify {

LF_API std::string chip_name();
// The value of "<key> : <value>" in the text of /proc/cpuinfo; empty when it has none.
std::string cpuinfo_value(const std::string& text, const std::string& key);

}  // namespace loongforge::isa_verify
