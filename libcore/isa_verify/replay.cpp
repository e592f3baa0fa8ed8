#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "isa_verify/vectors.h"

namespace loongforge::isa_verify {
namespace {

// The row that the vector was recorded with: forms may stand in several rows, apart by immediates.
const Operation* row_of(const SavedVector& vector, const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (operation.isa != vector.isa || operation.form() != vector.form) continue;
    const auto fits = [](const Immediate& immediate, int64_t value) {
      return immediate.bits == 0 ? value == 0
                                 : value >= immediate.low && value <= immediate.high &&
                                       value % immediate.scale == 0;
    };
    if (fits(operation.immediates[0], vector.operands.immediate) &&
        fits(operation.immediates[1], vector.operands.immediate2))
      return &operation;
  }
  return nullptr;
}

// The name of an operand that the operation reads and the vector does not have; empty: there is
// none.
std::string missing_operand(const SavedVector& vector, const Operation& operation) {
  const auto reads = [&](const auto& asks) {
    return asks(operation.formula) ||
           std::any_of(operation.given.begin(), operation.given.end(),
                       [&](const Given& given) { return asks(given.formula); });
  };
  constexpr std::pair<const char*, Register> kRegisterNames[] = {{"d", Register::kD},
                                                                 {"j", Register::kJ},
                                                                 {"k", Register::kK},
                                                                 {"a", Register::kA},
                                                                 {"memory", Register::kMemory}};
  for (const auto& [name, reg] : kRegisterNames)
    if (vector.lacks(name) &&
        reads([&, r = reg](const Formula& formula) { return !formula.types_read(r).empty(); }))
      return name;
  using Op = FormulaNode::Op;
  constexpr std::pair<const char*, Op> kWords[] = {
      {"general", Op::kGeneral}, {"mask", Op::kMask}, {"mask2", Op::kMask2}};
  for (const auto& [name, op] : kWords)
    if (vector.lacks(name) && reads([o = op](const Formula& formula) { return formula.reads(o); }))
      return name;
  if (vector.lacks("memory") && operation.formula.target() == Target::kMemory) return "memory";
  for (size_t i = 0; i < 2; ++i)
    if (const char* name = i == 0 ? "immediate" : "immediate2";
        operation.immediates[i].bits > 0 && vector.lacks(name))
      return name;
  return {};
}

bool in_a_table(const SavedVector& vector, const std::vector<Operation>& operations) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
    return operation.isa == vector.isa && operation.form() == vector.form;
  });
}

void replay_one(const SavedVector& vector, const Operation& operation, Runner* runner,
                ReplayReport* report) {
  runner->load({make_function(operation, vector.operands.immediate, vector.operands.immediate2)});
  const Result expected = reference_result(operation, vector.operands);
  const Execution got = execute(operation, vector.operands, 0, runner);
  ++report->vectors;
  report->float_result = operation.float_result();
  if (expected != vector.expected) ++report->other_reference;
  if (got.ending == vector.ending && got.result == vector.got) ++report->as_recorded;
  if (got.ending != Ending::kDone) {
    ++report->failing_vectors;
    report->status = got.ending == Ending::kIllegal ? Status::kIllegal : Status::kFault;
    return;
  }
  const Comparison compared = compare_results(operation, expected, got.result);
  report->cases += compared.cases;
  report->mismatches += compared.mismatches;
  report->worst_ulp = std::max(report->worst_ulp, compared.worst_ulp);
  if (compared.mismatches == 0) return;
  ++report->failing_vectors;
  if (report->status == Status::kPassed) report->status = Status::kMismatch;
}

// The entry of (isa, form) in a list that keeps the order of first appearance.
template <class Report>
Report& entry(std::vector<Report>* reports, std::unordered_map<std::string, size_t>* places,
              const SavedVector& vector) {
  const std::string isa = kernels::isa_name(vector.isa);
  const auto [place, added] = places->try_emplace(isa + " " + vector.form, reports->size());
  if (added) {
    reports->emplace_back();
    reports->back().isa = isa;
    reports->back().form = vector.form;
  }
  return (*reports)[place->second];
}

}  // namespace

std::vector<ReplayReport> replay_vectors(const std::vector<SavedVector>& vectors,
                                         const std::vector<Operation>& operations) {
  std::vector<ReplayReport> reports;
  std::unordered_map<std::string, size_t> places;
  Runner runner;
  for (const SavedVector& vector : vectors) {
    ReplayReport& report = entry(&reports, &places, vector);
    const Operation* operation = row_of(vector, operations);
    if (operation == nullptr && in_a_table(vector, operations))
      throw_bad_data(vector.place, "no row of " + vector.form + " has its immediates");
    report.not_run =
        operation == nullptr ? "no table has it; name its file by --ops" : why_not_run(vector.isa);
    if (!report.not_run.empty()) {
      ++report.vectors;
      continue;
    }
    if (const std::string name = missing_operand(vector, *operation); !name.empty())
      throw_bad_data(vector.place, vector.form + " reads " + name + ", which the vector lacks");
    if (reference_result(*operation, vector.operands).size() != vector.expected.size())
      throw_bad_data(vector.place, "expected has another length than " + vector.form + " leaves");
    replay_one(vector, *operation, &runner, &report);
  }
  return reports;
}

std::vector<DiffReport> diff_vectors(const std::vector<SavedVector>& first,
                                     const std::vector<SavedVector>& second) {
  std::vector<DiffReport> reports;
  std::unordered_map<std::string, size_t> places;
  std::unordered_map<std::string, const SavedVector*> others;
  for (const SavedVector& vector : second) others.emplace(vector.key(), &vector);
  std::unordered_set<std::string> seen;
  for (const SavedVector& vector : first) {
    if (!seen.insert(vector.key()).second) continue;  // written twice
    DiffReport& report = entry(&reports, &places, vector);
    const auto other = others.find(vector.key());
    if (other == others.end()) {
      ++report.only_first;
      continue;
    }
    const bool same = other->second->got == vector.got && other->second->ending == vector.ending;
    ++(same ? report.same : report.different);
    others.erase(other);
  }
  for (const SavedVector& vector : second)
    if (const auto left = others.find(vector.key());
        left != others.end() && left->second == &vector)
      ++entry(&reports, &places, vector).only_second;
  return reports;
}

}  // namespace loongforge::isa_verify
