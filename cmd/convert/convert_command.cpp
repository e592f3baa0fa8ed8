#include "cmd/convert/convert_command.h"

#include <map>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/text.h"
#include "cmd/convert/options.h"
#include "support/counted.h"
#include "support/json.h"

namespace loongforge::cmd {
namespace {

using support::Json;

// Shows the library's progress while it is alive.
class Display {
 public:
  explicit Display(const char* label) : line_(label, cli::ProgressLine::style_for_stderr()) {}
  ~Display() { cli::print_error(line_.finish()); }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  convert::ProgressCallback callback() {
    return [this](const convert::Progress& progress) {
      cli::print_error(line_.update(progress.done_bytes, progress.total_bytes, progress.tensor));
    };
  }

 private:
  cli::ProgressLine line_;
};

Json string_array(const std::vector<std::string>& words) {
  Json array = Json::array();
  for (const std::string& word : words) array.push_back(word);
  return array;
}

Json kept_json(const std::vector<convert::KeptTensor>& kept) {
  Json array = Json::array();
  for (const convert::KeptTensor& tensor : kept) {
    Json object = Json::object();
    object.set("tensor", tensor.tensor);
    object.set("dtype", tensor.dtype);
    object.set("reason", tensor.reason);
    array.push_back(std::move(object));
  }
  return array;
}

// The first of the names, and how many more there are.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i)
    text += (i > 0 ? ", " : "") + cli::one_line(names[i]);
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

// Which linears stay in higher precision, and why: one line a reason, the first names of each.
std::string kept_text(const std::vector<convert::KeptTensor>& kept) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const convert::KeptTensor& tensor : kept)
    by_reason[tensor.dtype + " (" + tensor.reason + ")"].push_back(tensor.tensor);
  std::string text;
  for (const auto& [reason, names] : by_reason) {
    text += "  kept " + reason + ": " + some_of(names);
    text += "\n";
  }
  return text;
}

std::string speed(uint64_t bytes, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  return cli::human_duration(seconds) + ", " + cli::human_bytes(static_cast<uint64_t>(rate)) + "/s";
}

Json import_json(const convert::ImportReport& report, const convert::ImportOptions& asked,
                 double seconds) {
  Json json = Json::object();
  json.set("output_path", asked.output_path.string());
  json.set("dry_run", asked.dry_run);
  json.set("family", report.family);
  json.set("model_name", report.model_name);
  json.set("device", report.device);
  json.set("quantize", report.quantize);
  json.set("source_format", report.source_format);
  json.set("parameters", report.parameters);
  json.set("tensors", report.tensors);
  json.set("aliases", report.aliases);
  json.set("nodes", report.nodes);
  json.set("blocks", report.blocks);
  json.set("linears", report.linears);
  json.set("linears_fp8", report.linears_fp8);
  json.set("linears_nf4", report.linears_nf4);
  json.set("source_bytes", report.source_bytes);
  json.set("stored_bytes", report.stored_bytes);
  json.set("weight_files", report.weight_files);
  json.set("nan_elements", report.nan_elements);
  json.set("kept", kept_json(report.kept));
  json.set("ignored", string_array(report.ignored));
  json.set("warnings", string_array(report.warnings));
  json.set("has_tokenizer", report.has_tokenizer);
  json.set("pad_token_id", report.pad_token_id ? Json(*report.pad_token_id) : Json());
  json.set("files", string_array(report.files));
  json.set("seconds", seconds);
  return json;
}

std::string import_text(const convert::ImportReport& report, const convert::ImportOptions& asked,
                        double seconds) {
  std::string text = cli::one_line(report.model_name) + " (" + report.family + ", " +
                     report.source_format +
                     "): " + cli::human_count(static_cast<uint64_t>(report.parameters)) +
                     " parameters in " + support::counted(report.tensors, "tensor") + ", " +
                     support::counted(report.blocks, "block") + "\n";
  const bool nf4 = report.quantize == "nf4";
  text += "  linears: " + std::to_string(nf4 ? report.linears_nf4 : report.linears_fp8) + " of " +
          std::to_string(report.linears) + (nf4 ? " in NF4" : " in FP8");
  if (const int64_t other = nf4 ? report.linears_fp8 : report.linears_nf4; other > 0)
    text += ", " + std::to_string(other) + (nf4 ? " in FP8" : " in NF4");
  if (report.linears_as_stored > 0)
    text += ", " + std::to_string(report.linears_as_stored) + " as the checkpoint has them";
  text += "\n" + kept_text(report.kept);
  if (!report.ignored.empty())
    text += "  not needed by the graph: " + some_of(report.ignored) + "\n";
  if (report.pad_token_id) text += "  pad_token_id: " + std::to_string(*report.pad_token_id) + "\n";
  text += "  weights: " + cli::human_bytes(report.source_bytes) + " read, " +
          cli::human_bytes(report.stored_bytes) +
          (asked.dry_run ? " to be written\n"
                         : " written (" + speed(report.source_bytes, seconds) + ")\n");
  return text + (asked.dry_run ? "dry run: nothing was written\n"
                               : "wrote " + asked.output_path.string() + "\n");
}

Json export_json(const convert::ExportReport& report, const convert::ExportOptions& asked,
                 double seconds) {
  Json json = Json::object();
  json.set("output_path", asked.output_path.string());
  json.set("dry_run", asked.dry_run);
  json.set("format", report.format);
  json.set("dtype", report.dtype);
  json.set("family", report.family);
  json.set("tensors", report.tensors);
  json.set("bytes", report.bytes);
  json.set("weight_files", report.weight_files);
  json.set("merged", report.merged);
  json.set("kept", kept_json(report.kept));
  json.set("warnings", string_array(report.warnings));
  json.set("files", string_array(report.files));
  json.set("seconds", seconds);
  return json;
}

std::string export_text(const convert::ExportReport& report, const convert::ExportOptions& asked,
                        double seconds) {
  std::string kind = report.family;
  if (!report.dtype.empty()) kind += (kind.empty() ? "" : ", ") + report.dtype;
  std::string text = report.format + (kind.empty() ? "" : " (" + kind + ")") + ": " +
                     support::counted(report.tensors, "tensor") + ", " +
                     cli::human_bytes(report.bytes) + " in " +
                     support::counted(report.weight_files, "file") + "\n";
  if (report.merged > 0)
    text += "  adapter merged into " + support::counted(report.merged, "linear") + "\n";
  text += kept_text(report.kept);
  if (asked.dry_run) return text + "dry run: nothing was written\n";
  return text + "wrote " + asked.output_path.string() + " (" + speed(report.bytes, seconds) + ")\n";
}

// Runs one direction, shows its progress, then its warnings and its report.
template <class Asked, class Report>
int convert_and_report(const char* label, const cli::Options& options, const Asked& asked,
                       Report (*act)(const Asked&, const convert::ProgressCallback&),
                       Json (*json)(const Report&, const Asked&, double),
                       std::string (*text)(const Report&, const Asked&, double)) {
  const Stopwatch watch;
  Report report;
  {
    Display display(label);
    report = act(asked, display.callback());
  }
  const double seconds = watch.seconds();
  for (const std::string& warning : report.warnings) log_warning(warning);
  cli::print(options.flag("json") ? json(report, asked, seconds).dump() + "\n"
                                  : text(report, asked, seconds));
  return 0;
}

}  // namespace

int run_convert(const cli::Options& options) {
  const StopGuard guard;  // what was half written goes
  const int threads = cli::thread_count(options);
  if (options.has("export"))
    return convert_and_report("export", options, export_options(options, threads),
                              convert::export_model, export_json, export_text);
  return convert_and_report("convert", options, import_options(options, threads),
                            convert::import_model, import_json, import_text);
}

}  // namespace loongforge::cmd
