#include "cli/libraries.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gcrypt.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <pcre2.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/version.h>
#include <utf8proc.h>

#include <CLI/Version.hpp>
#include <array>
#include <nlohmann/detail/abi_macros.hpp>
#include <string>

namespace loongforge::cli {
namespace {

std::string dotted(unsigned major, unsigned minor, unsigned patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string pcre2_version() {
  std::array<char, 64> text{};  // "10.42 2022-12-11"; the library asks for 24 bytes
  pcre2_config(PCRE2_CONFIG_VERSION, text.data());
  const std::string version(text.data());
  return version.substr(0, version.find(' '));
}

}  // namespace

support::Json library_versions() {
  support::Json json = support::Json::object();
  json.set("CLI11", CLI11_VERSION);
  json.set("fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  json.set("glibc", gnu_get_libc_version());
  const unsigned hwloc = hwloc_get_api_version();
  json.set("hwloc", dotted(hwloc >> 16, hwloc >> 8 & 0xFF, hwloc & 0xFF));
  json.set("libgcrypt", gcry_check_version(nullptr));
  json.set("nlohmann_json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                   NLOHMANN_JSON_VERSION_PATCH));
  json.set("pcre2", pcre2_version());
  json.set("sentencepiece", LF_SENTENCEPIECE_VERSION);  // of its headers
  json.set("spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH));
  json.set("utf8proc", utf8proc_version());
  return json;
}

}  // namespace loongforge::cli
