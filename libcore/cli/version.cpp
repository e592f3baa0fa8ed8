#include "cli/version.h"

#include "cli/isa_report.h"
#include "cli/libraries.h"

namespace loongforge::cli {

const char* version_number() { return LF_VERSION; }

const char* machine_name() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__loongarch64)
  return "LoongArch64";
#else
#error "LoongForge is for x86-64 and LoongArch"
#endif
}

std::string version_line() {
  return std::string("v") + version_number() + " (" + machine_name() + ")";
}

support::Json version_json() {
  const support::Json isa = isa_json();
  support::Json json = support::Json::object();
  json.set("version", version_number());
  json.set("machine", machine_name());
  for (const auto& [key, value] : isa.as_object()) json.set(key, value);
#if defined(__clang__)
  json.set("compiler", "clang " __clang_version__);
#else
  json.set("compiler", "gcc " __VERSION__);
#endif
  json.set("build_type", LF_BUILD_TYPE);
  json.set("libraries", library_versions());
  return json;
}

}  // namespace loongforge::cli
