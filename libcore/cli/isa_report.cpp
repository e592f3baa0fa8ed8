#include "cli/isa_report.h"

#include "cli/text.h"
#include "kernels/isa.h"

namespace loongforge::cli {

support::Json isa_json() {
  support::Json isas = support::Json::array();
  for (const kernels::Isa isa : kernels::available_isas()) isas.push_back(kernels::isa_name(isa));
  support::Json json = support::Json::object();
  json.set("isa_found", kernels::isa_features());
  json.set("isas_available", std::move(isas));
  json.set("isa_used", kernels::isa_name(kernels::active_isa()));
  return json;
}

std::string isa_text(const support::Json& report) {
  const auto line = [](const char* label, const std::string& value) {
    return pad_right(label, 11) + value + "\n";
  };
  std::string available;
  for (const support::Json& isa : report.at("isas_available").as_array())
    available += (available.empty() ? "" : " ") + isa.as_string();
  const std::string& found = report.at("isa_found").as_string();
  return line("found", found.empty() ? "no vector instructions" : found) +
         line("available", available) + line("used", report.at("isa_used").as_string());
}

}  // namespace loongforge::cli
