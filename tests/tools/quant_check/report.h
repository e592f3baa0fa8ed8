// What the sections of lf-quant-check share: one printed line per case, and whether all were right.
// Thread-safety: one thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>

namespace loongforge::quant_check {

class Report {
 public:
  void line(const std::string& name, bool ok, const std::string& detail) {
    std::printf("  %-32s %-6s %s\n", name.c_str(), ok ? "ok" : "FAILED", detail.c_str());
    ++cases_;
    ok_ = ok_ && ok;
  }

  // Every value must be the same fp32, to the bit; any NaN is a NaN.
  void same_values(const std::string& name, std::span<const float> got,
                   std::span<const float> wanted) {
    if (got.size() != wanted.size()) {
      line(name, false,
           std::to_string(got.size()) + " values instead of " + std::to_string(wanted.size()));
      return;
    }
    size_t different = 0, first = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(wanted[i]) ||
          (std::isnan(got[i]) && std::isnan(wanted[i])))
        continue;
      if (different++ == 0) first = i;
    }
    if (different == 0) {
      line(name, true, std::to_string(got.size()) + " values equal");
      return;
    }
    char text[200];
    std::snprintf(text, sizeof text, "%zu of %zu differ, the first at %zu: %.9g instead of %.9g",
                  different, got.size(), first, static_cast<double>(got[first]),
                  static_cast<double>(wanted[first]));
    line(name, false, text);
  }
  // The same of codes.
  void same_codes(const std::string& name, std::span<const uint8_t> got,
                  std::span<const uint8_t> wanted) {
    if (got.size() != wanted.size()) {
      line(name, false,
           std::to_string(got.size()) + " codes instead of " + std::to_string(wanted.size()));
      return;
    }
    size_t different = 0, first = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != wanted[i] && different++ == 0) first = i;
    }
    if (different == 0) {
      line(name, true, std::to_string(got.size()) + " codes equal");
      return;
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  "%zu of %zu differ, the first at %zu: 0x%02x instead of 0x%02x", different,
                  got.size(), first, static_cast<unsigned>(got[first]),
                  static_cast<unsigned>(wanted[first]));
    line(name, false, text);
  }

  void begin(const std::string& section) { std::printf("%s\n", section.c_str()); }
  void absent(const std::filesystem::path& what) {
    std::printf("  SKIPPED: %s is not there, NOTHING WAS CHECKED in this section\n",
                what.string().c_str());
  }

  bool ok() const { return ok_; }
  int cases() const { return cases_; }

 private:
  bool ok_ = true;
  int cases_ = 0;
};

// The sections. dir: the folder under check. An input that is broken ends in an Error.
void check_gguf(const std::filesystem::path& dir, Report* report);       // gguf/
void check_fp8_codec(const std::filesystem::path& dir, Report* report);  // fp8_codec.safetensors
void check_fp8_checkpoints(const std::filesystem::path& dir, Report* report);  // fp8_block/ ...
void check_nf4(const std::filesystem::path& dir, Report* report);              // nf4.safetensors

}  // namespace loongforge::quant_check
