// The disassembler of the machine that this is built for: its own, or that of a cross compiler.
#pragma once

#include <cstdlib>
#include <string>

namespace loongforge::test {

// Empty: it is not installed.
inline std::string objdump() {
#if defined(__loongarch__)
  constexpr const char* kNames[] = {"loongarch64-linux-gnu-objdump", "objdump"};
#else
  constexpr const char* kNames[] = {"objdump"};
#endif
  for (const char* name : kNames)
    if (std::system((std::string(name) + " --version > /dev/null 2>&1").c_str()) == 0) return name;
  return {};
}

}  // namespace loongforge::test
