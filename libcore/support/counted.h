// "1 step", "2 steps", "3 micro-batches": a count and what it counts, for lines that people read.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>

namespace loongforge::support {

inline std::string counted(int64_t n, const std::string& one) {
  const bool es = one.ends_with("ch") || one.ends_with("sh") || one.ends_with("s");
  return std::to_string(n) + " " + one + (n == 1 ? "" : es ? "es" : "s");
}

}  // namespace loongforge::support
