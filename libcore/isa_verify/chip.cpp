#include "isa_verify/chip.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#endif

namespace loongforge::isa_verify {
namespace {

std::string cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

#if defined(__x86_64__)

std::string identity() {
  unsigned eax = 0, words[3] = {};
  char vendor[13] = {};
  if (__get_cpuid(0, &eax, &words[0], &words[2], &words[1]) != 0) std::memcpy(vendor, words, 12);
  unsigned version = 0, ignored = 0;
  __get_cpuid(1, &version, &ignored, &ignored, &ignored);
  unsigned family = version >> 8 & 15, model = version >> 4 & 15;
  if (family == 6 || family == 15) model |= version >> 12 & 0xF0;
  if (family == 15) family += version >> 20 & 0xFF;
  char text[64];
  std::snprintf(text, sizeof text, "%s %02x-%02x-%02x", vendor, family, model, version & 15);
  return text;
}

#elif defined(__loongarch__)

std::string identity() {
  uint32_t word = 0;
  __asm__("cpucfg %0, %1" : "=r"(word) : "r"(0));
  char text[64];
  std::snprintf(text, sizeof text, "LoongArch prid %08x", word);
  return text;
}

#endif

}  // namespace

std::string cpuinfo_value(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t end = line.find_last_not_of(" \t", colon == 0 ? 0 : colon - 1);
    if (end == std::string::npos || line.substr(0, end + 1) != key) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

std::string chip_name() {
  const std::string text = cpuinfo();
  std::string name = identity();
  for (const char* key : {"model name", "Model Name"}) {
    const std::string value = cpuinfo_value(text, key);
    if (!value.empty()) name += " " + value;
  }
  const std::string microcode = cpuinfo_value(text, "microcode");
  if (!microcode.empty()) name += " microcode " + microcode;
  return name;
}

}  // namespace loongforge::isa_verify
