#include "cmd/debug/isa_verify_command.h"

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/stop.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cmd/debug/options.h"
#include "isa_verify/chip.h"
#include "isa_verify/vectors.h"
#include "support/counted.h"
#include "support/json.h"

namespace loongforge::cmd {
namespace {

using isa_verify::Operation;
using isa_verify::OperationReport;
using support::Json;

std::string counted(uint64_t n, const char* one) {
  return support::counted(static_cast<int64_t>(n), one);
}

constexpr uint64_t kSavedOfEach = 64;  // failing vectors of one operation

// The built-in operations, and the file's in place of those of the same name.
std::vector<Operation> operations_of(const cli::Options& options) {
  std::vector<Operation> operations = isa_verify::built_in_operations();
  if (!options.has("ops")) return operations;
  const std::string& path = options.text("ops");
  std::vector<Operation> added =
      isa_verify::parse_operations(read_text(path, uint64_t{16} << 20), path);
  if (added.empty())
    throw_bad_data(path, "no row is in it", "loongforge-debug(1) describes rows, under OPERATIONS");
  const auto name = [](const Operation& operation) {
    return std::string(kernels::isa_name(operation.isa)) + " " + operation.form();
  };
  std::unordered_set<std::string> replaced;
  for (const Operation& operation : added) replaced.insert(name(operation));
  std::erase_if(operations, [&](const Operation& known) { return replaced.contains(name(known)); });
  for (Operation& operation : added) operations.push_back(std::move(operation));
  return operations;
}

[[noreturn]] void no_vectors(const std::string& where) {
  throw_bad_data(where, "no vector is in it",
                 "--save keeps failing vectors only; --save-all with it keeps every one");
}

std::string ulp_text(uint64_t ulp) { return ulp == ~uint64_t{0} ? "NaN" : std::to_string(ulp); }

// --save-all: before hours of work.
void check_size(const std::vector<const Operation*>& operations,
                const isa_verify::VerifyOptions& asked, const std::string& chip) {
  const uint64_t bytes = vector_bytes(operations, asked, chip);
  if (bytes <= isa_verify::kMostVectorBytes) return;
  throw_usage("--save-all: these vectors take " + cli::human_bytes(bytes) +
                  ", and --replay and --diff read " +
                  cli::human_bytes(isa_verify::kMostVectorBytes),
              "take fewer operations by --only, or fewer vectors by --vectors");
}

int list_operations(const std::vector<const Operation*>& operations, bool as_json) {
  Json list = Json::array();
  cli::Table table({"isa", "operation", "encoding", "formula"});
  for (const Operation* operation : operations) {
    std::string code;
    for (const uint8_t byte : operation->code) {
      constexpr const char* kDigits = "0123456789abcdef";
      code += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    if (!as_json) {
      table.add({kernels::isa_name(operation->isa), operation->form(), "." + code,
                 operation->formula_text});
      continue;
    }
    Json row = Json::object();
    row.set("isa", kernels::isa_name(operation->isa));
    row.set("op", operation->form());
    row.set("code", code);
    row.set("formula", operation->formula_text);
    row.set("ulp", operation->ulp);
    row.set("optional", operation->optional);
    row.set("place", operation->place);
    list.push_back(std::move(row));
  }
  if (!as_json) {
    cli::print(table.render());
    return 0;
  }
  Json json = Json::object();
  json.set("operations", std::move(list));
  cli::print(json.dump() + "\n");
  return 0;
}

struct Totals {
  uint64_t operations = 0, cases = 0, mismatches = 0, failed = 0, absent = 0;

  void add(const OperationReport& report) {
    ++operations;
    cases += report.cases;
    mismatches += report.mismatches;
    failed += report.failed() ? 1 : 0;
    absent += report.status == isa_verify::Status::kAbsent ? 1 : 0;
  }
};

std::string verify_text(const std::vector<OperationReport>& reports, const Totals& totals,
                        const std::string& chip) {
  cli::Table table({"isa", "operation", "cases", "mismatches", "worst ULP", "result"});
  for (const OperationReport& report : reports) {
    table.add({kernels::isa_name(report.operation->isa), report.operation->form(),
               std::to_string(report.cases), std::to_string(report.mismatches),
               report.operation->float_result() ? ulp_text(report.worst_ulp) : "-",
               status_name(report.status)});
  }
  std::string text = cli::one_line(chip) + "\n" + table.render();
  text += counted(totals.operations, "operation") + ", " + cli::human_count(totals.cases) +
          " cases, " + cli::human_count(totals.mismatches) + " mismatches; " +
          (totals.failed > 0 ? counted(totals.failed, "operation") + " FAILED" : "all right");
  if (totals.absent > 0)
    text += ", " + std::to_string(totals.absent) + " of extensions this CPU lacks";
  return text + "\n";
}

std::string verify_json(const std::vector<OperationReport>& reports, const Totals& totals,
                        const std::string& chip, const isa_verify::VerifyOptions& asked) {
  Json json = Json::object();
  json.set("chip", chip);
  json.set("seed", asked.seed);
  json.set("vectors", asked.vectors);
  Json list = Json::array();
  for (const OperationReport& report : reports) {
    Json row = Json::object();
    row.set("isa", kernels::isa_name(report.operation->isa));
    row.set("op", report.operation->form());
    row.set("vectors", report.vectors);
    row.set("cases", report.cases);
    row.set("mismatches", report.mismatches);
    row.set("failing_vectors", report.failing_vectors);
    row.set("worst_ulp", report.worst_ulp == ~uint64_t{0} ? Json() : Json(report.worst_ulp));
    row.set("allowed_ulp", report.operation->ulp);
    row.set("result", status_name(report.status));
    list.push_back(std::move(row));
  }
  json.set("operations", std::move(list));
  json.set("cases", totals.cases);
  json.set("mismatches", totals.mismatches);
  json.set("failed", totals.failed);
  json.set("absent", totals.absent);
  return json.dump() + "\n";
}

}  // namespace

int run_isa_verify(const cli::Options& options) {
  const isa_verify::VerifyOptions asked = verify_options(options);
  const std::vector<Operation> operations = operations_of(options);
  const std::vector<const Operation*> selected = select_operations(operations, asked);
  if (options.flag("list")) return list_operations(selected, options.flag("json"));
  const std::string chip = isa_verify::chip_name();
  std::unique_ptr<isa_verify::VectorFile> file;
  std::optional<StopGuard> guard;  // a file that is half written goes
  if (options.has("save")) {
    if (options.flag("save-all")) check_size(selected, asked, chip);
    guard.emplace();
    file = std::make_unique<isa_verify::VectorFile>(options.text("save"));
  }
  std::vector<OperationReport> reports;
  Totals totals;
  {
    isa_verify::Runner runner;
    for (const Operation* operation : selected) {
      uint64_t saved = 0;
      const auto sink = [&](const isa_verify::TriedVector& vector) {
        if (!options.flag("save-all") && (!vector.failed || saved == kSavedOfEach)) return;
        ++saved;
        file->add(
            vector_json(vector.operation, vector.operands, vector.expected, vector.got, chip));
      };
      reports.push_back(verify_operation(*operation, asked, &runner,
                                         file ? isa_verify::VectorSink(sink) : nullptr));
      totals.add(reports.back());
    }
  }
  if (file) file->commit();
  cli::print(options.flag("json") ? verify_json(reports, totals, chip, asked)
                                  : verify_text(reports, totals, chip));
  if (file && !options.flag("json"))
    cli::print("wrote " + counted(file->count(), "vector") + " to " + options.text("save") + "\n");
  return totals.failed > 0 ? 1 : 0;
}

int run_replay(const cli::Options& options) {
  const std::vector<Operation> operations = operations_of(options);
  const std::vector<isa_verify::SavedVector> vectors =
      isa_verify::read_vectors(options.text("replay"));
  if (vectors.empty()) no_vectors(options.text("replay"));
  Json list = Json::array();
  cli::Table table(
      {"isa", "operation", "vectors", "mismatches", "as recorded", "worst ULP", "result"});
  uint64_t run = 0, failing = 0, idle = 0, other_reference = 0;
  for (const isa_verify::ReplayReport& report : replay_vectors(vectors, operations)) {
    const bool applies = report.not_run.empty();
    (applies ? run : idle) += report.vectors;
    failing += report.failing_vectors;
    other_reference += report.other_reference;
    const std::string result = applies ? status_name(report.status) : "not run: " + report.not_run;
    table.add({report.isa, cli::one_line(report.form), std::to_string(report.vectors),
               applies ? std::to_string(report.mismatches) : "-",
               applies ? std::to_string(report.as_recorded) : "-",
               applies && report.float_result ? ulp_text(report.worst_ulp) : "-", result});
    Json row = Json::object();
    row.set("isa", report.isa);
    row.set("op", report.form);
    row.set("vectors", report.vectors);
    row.set("failing_vectors", report.failing_vectors);
    row.set("mismatches", report.mismatches);
    row.set("as_recorded", report.as_recorded);
    row.set("other_reference", report.other_reference);
    row.set("result", applies ? status_name(report.status) : "not run");
    if (!applies) row.set("reason", report.not_run);
    list.push_back(std::move(row));
  }
  Json json = Json::object();
  json.set("chip", isa_verify::chip_name());
  json.set("operations", std::move(list));
  json.set("run", run);
  json.set("failing", failing);
  json.set("not_run", idle);
  std::string text = table.render() + counted(run, "vector") + " run, " + std::to_string(failing) +
                     (failing == 1 ? " fails, " : " fail, ") + std::to_string(idle) +
                     (idle == 1 ? " does" : " do") + " not apply here\n";
  if (other_reference > 0)
    text += std::to_string(other_reference) + (other_reference == 1 ? " was" : " were") +
            " recorded with another reference than this table's\n";
  cli::print(options.flag("json") ? json.dump() + "\n" : text);
  if (run == 0 && idle > 0)
    throw_failed(options.text("replay"), "no vector of it applies to this CPU");
  return failing > 0 ? 1 : 0;
}

int run_diff(const cli::Options& options) {
  const std::string& other = options.require("against", "name the file of the other chip");
  const std::vector<isa_verify::SavedVector> first = isa_verify::read_vectors(options.text("diff"));
  const std::vector<isa_verify::SavedVector> second = isa_verify::read_vectors(other);
  if (first.empty() && second.empty()) no_vectors(options.text("diff") + " and " + other);
  const auto chip = [](const std::vector<isa_verify::SavedVector>& vectors) {
    if (vectors.empty()) return std::string("no vectors");
    for (const isa_verify::SavedVector& vector : vectors)
      if (vector.chip != vectors.front().chip) return std::string("several chips");
    return cli::one_line(vectors.front().chip);
  };
  Json list = Json::array();
  cli::Table table({"isa", "operation", "same", "different", "only in 1", "only in 2"});
  uint64_t differences = 0;
  for (const isa_verify::DiffReport& report : diff_vectors(first, second)) {
    differences += report.different + report.only_first + report.only_second;
    table.add({report.isa, cli::one_line(report.form), std::to_string(report.same),
               std::to_string(report.different), std::to_string(report.only_first),
               std::to_string(report.only_second)});
    Json row = Json::object();
    row.set("isa", report.isa);
    row.set("op", report.form);
    row.set("same", report.same);
    row.set("different", report.different);
    row.set("only_first", report.only_first);
    row.set("only_second", report.only_second);
    list.push_back(std::move(row));
  }
  Json json = Json::object();
  json.set("first", chip(first));
  json.set("second", chip(second));
  json.set("operations", std::move(list));
  json.set("differences", differences);
  cli::print(options.flag("json")
                 ? json.dump() + "\n"
                 : "1: " + chip(first) + "\n2: " + chip(second) + "\n" + table.render() +
                       (differences > 0 ? counted(differences, "vector") +
                                              (differences == 1 ? " differs\n" : " differ\n")
                                        : "no difference\n"));
  return differences > 0 ? 1 : 0;
}

}  // namespace loongforge::cmd
