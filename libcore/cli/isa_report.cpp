#include "cli/isa_report.h"

#include <cstdlib>
#include <span>

#include "cli/text.h"
#include "kernels/isa.h"
#include "kernels/native_fp8.h"
#include "kernels/op_list.h"

namespace loongforge::cli {
namespace {

using kernels::Isa;
using support::Json;

Json names(std::span<const Isa> isas) {
  Json list = Json::array();
  for (const Isa isa : isas) list.push_back(kernels::isa_name(isa));
  return list;
}

Json features(const kernels::CpuFeatures& cpu) {
  Json list = Json::array();
  for (size_t i = 0; i < cpu.count; ++i) {
    Json feature = Json::object();
    feature.set("name", cpu.all[i].name);
    feature.set("present", cpu.all[i].present);
    feature.set("enabled", cpu.all[i].enabled);
    list.push_back(std::move(feature));
  }
  return list;
}

// Those of the features that are present and, as asked, enabled or not.
std::string joined(const Json& found, bool enabled) {
  std::string text;
  for (const Json& feature : found.as_array())
    if (feature.at("present").as_bool() && feature.at("enabled").as_bool() == enabled)
      text += (text.empty() ? "" : " ") + feature.at("name").as_string();
  return text;
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& name : list.as_array()) text += (text.empty() ? "" : " ") + name.as_string();
  return text;
}

std::string line(const char* label, const std::string& value) {
  return value.empty() ? std::string() : pad_right(label, 14) + value + "\n";
}

}  // namespace

Json isa_json() {
  const Isa active = kernels::active_isa();
  Json json = Json::object();
  json.set("isa_found", features(kernels::cpu()));
  json.set("isas_compiled", names(kernels::compiled_isas()));
  json.set("isas_available", names(kernels::available_isas()));
  json.set("isa_used", kernels::isa_name(active));
  json.set("isa_emulated", kernels::isa_is_emulated(active));
  const char* forced = std::getenv("LOONGFORGE_ISA");
  json.set("isa_override", forced == nullptr || *forced == '\0' ? Json() : Json(forced));
  Json families = Json::object();
  for (const kernels::Family* family : kernels::families())
    families.set(family->name, kernels::isa_name(family->table_for(active)));
  json.set("isa_families", std::move(families));
  const kernels::NativeFp8* native = kernels::native_fp8();
  json.set("native_fp8", native == nullptr ? Json() : Json(native->name));
  const std::string advice = lasx_advice(kernels::cpu().lasx_state);
  json.set("isa_advice", advice.empty() ? Json() : Json(advice));
  return json;
}

std::string isa_text(const Json& report) {
  const Json& found = report.at("isa_found");
  const std::string usable = joined(found, true);
  std::string used = report.at("isa_used").as_string();
  if (report.at("isa_emulated").as_bool()) used += " (emulated)";
  if (report.at("isa_override").is_string())
    used += " (LOONGFORGE_ISA=" + report.at("isa_override").as_string() + ")";
  std::string families;
  for (const auto& [family, isa] : report.at("isa_families").as_object())
    families += (families.empty() ? "" : ", ") + family + " " + isa.as_string();
  const Json& native = report.at("native_fp8");
  const Json& advice = report.at("isa_advice");
  return line("found", usable.empty() ? "no vector instructions" : usable) +
         line("switched off", joined(found, false)) +
         line("compiled", joined(report.at("isas_compiled"))) +
         line("available", joined(report.at("isas_available"))) + line("used", used) +
         line("families", families) +
         line("native FP8", native.is_string() ? native.as_string() : "none") +
         (advice.is_string() ? advice.as_string() + "\n" : "");
}

std::string lasx_advice(kernels::LasxState state) {
  const std::string cure =
      "; switch it on in the BIOS: Advanced -> CPU Configuration -> LASX Support = Enabled";
  switch (state) {
    case kernels::LasxState::kOff:
      return "LASX is switched off although this CPU has it: kernels work on 128 bits at a time "
             "instead of 256, at "
             "about half the speed" +
             cure + ", and where it is enabled there, in the kernel (CONFIG_CPU_HAS_LASX)";
    case kernels::LasxState::kHidden:
      return "no LASX is reported: kernels work on 128 bits at a time instead of 256, at about "
             "half the speed; "
             "LA464 and LA664 cores (3A5000 and later) have it" +
             cure;
    case kernels::LasxState::kNone:
      return "neither LSX nor LASX is reported: kernels run without vectors, at less than a third "
             "of the speed; "
             "LA464 and LA664 cores (3A5000 and later) have both" +
             cure;
    case kernels::LasxState::kEnabled:
    case kernels::LasxState::kNotLoongArch:
      break;
  }
  return {};
}

}  // namespace loongforge::cli
