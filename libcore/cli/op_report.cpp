#include "cli/op_report.h"

#include <span>

#include "cli/text.h"
#include "kernels/native_fp8.h"
#include "kernels/op_list.h"

namespace loongforge::cli {
namespace {

using support::Json;

Json isas_of(const kernels::Op& op, std::span<const kernels::Isa> isas) {
  Json list = Json::array();
  for (const kernels::Isa isa : isas)
    if (op.row->in_table(isa)) list.push_back(kernels::isa_name(isa));
  return list;
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list.as_array()) text += (text.empty() ? "" : " ") + item.as_string();
  return text;
}

}  // namespace

Json ops_json() {
  Json operations = Json::array();
  for (const kernels::Op& op : kernels::fp8_ops()) {
    Json entry = Json::object();
    entry.set("name", op.row->name);
    entry.set("family", op.family->name);
    entry.set("direction", kernels::direction_name(op.direction));
    entry.set("format", kernels::format_name(op.format));
    entry.set("what", op.row->what);
    entry.set("isas", isas_of(op, kernels::compiled_isas()));
    entry.set("usable", isas_of(op, kernels::available_isas()));
    operations.push_back(std::move(entry));
  }
  const kernels::NativeFp8* native = kernels::native_fp8();
  Json report = Json::object();
  report.set("count", static_cast<int64_t>(operations.as_array().size()));
  report.set("isa_used", kernels::isa_name(kernels::active_isa()));
  report.set("native_fp8", native == nullptr ? Json() : Json(native->name));
  report.set("operations", std::move(operations));
  return report;
}

std::string ops_text(const Json& report) {
  Table table({"operation", "direction", "format", "family", "usable here", "compiled"});
  for (const Json& op : report.at("operations").as_array())
    table.add({op.at("name").as_string(), op.at("direction").as_string(),
               op.at("format").as_string(), op.at("family").as_string(), joined(op.at("usable")),
               joined(op.at("isas"))});
  const Json& native = report.at("native_fp8");
  return table.render() + "\n" + std::to_string(report.at("count").as_int()) +
         " FP8 operations; used: " + report.at("isa_used").as_string() +
         "; native FP8: " + (native.is_string() ? native.as_string() : "none") + "\n";
}

}  // namespace loongforge::cli
