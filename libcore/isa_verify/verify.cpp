#include "isa_verify/verify.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/stop.h"
#include "isa_verify/inputs.h"

namespace loongforge::isa_verify {
namespace {

using kernels::Isa;

constexpr size_t kLookEvery = 1024;   // vectors: whether to stop
constexpr uint64_t kX86Flags = 0x45;  // CF, PF, ZF

// Bytes of the register that the result is compared in.
size_t register_bytes(const Operation& operation) {
  if (operation.isa == Isa::kAvx2) return 32;
  if (operation.isa == Isa::kAvx512) return 64;
  return static_cast<size_t>(operation.vector_bytes);
}

Result bytes_of(uint64_t value, size_t count) {
  Result result(count);
  std::memcpy(result.data(), &value, count);
  return result;
}

// A mask's bits come of an expression per element, or, without vectors, of one for all of it.
uint64_t reference_mask(const Operation& operation, const Operands& operands, NanRule rule) {
  const Formula& formula = operation.formula;
  if (operation.vector_bytes == 0)
    return static_cast<uint64_t>(formula.evaluate(operands, 0, rule));
  uint64_t mask = 0;
  for (int n = 0; n < operation.vector_bytes / type_bytes(formula.type()); ++n)
    if (formula.evaluate(operands, n, rule) != 0) mask |= uint64_t{1} << n;
  return mask;
}

void fill_frame(const Operands& operands, Frame* frame) {
  std::memset(frame, 0, sizeof *frame);
  std::memcpy(frame->vectors, operands.vectors.data(), sizeof frame->vectors);
  std::memcpy(frame->memory, operands.memory.data(), sizeof frame->memory);
  std::memcpy(frame->masks, operands.masks.data(), sizeof frame->masks);
  frame->general = operands.general;
}

void compare_element(const Operation& operation, Uint128 expected, Uint128 got,
                     Comparison* comparison) {
  ++comparison->cases;
  if (expected == got) return;
  const Type type = operation.formula.type();
  bool wrong = true;
  if (is_float(type)) {
    const FloatFormat format = float_format(type);
    const uint64_t distance =
        ulp_distance(format, static_cast<uint64_t>(expected), static_cast<uint64_t>(got));
    comparison->worst_ulp = std::max(comparison->worst_ulp, distance);
    wrong = operation.ulp == 0 || distance > operation.ulp;
  }
  if (wrong) ++comparison->mismatches;
}

bool matches(const Operation& operation, const VerifyOptions& options) {
  if (std::find(options.isas.begin(), options.isas.end(), operation.isa) == options.isas.end())
    return false;
  if (options.patterns.empty()) return true;
  return std::any_of(options.patterns.begin(), options.patterns.end(), [&](const std::string& p) {
    return fnmatch(p.c_str(), operation.mnemonic.c_str(), 0) == 0;
  });
}

struct ImmediatePair {
  int64_t first, second;
};

std::vector<ImmediatePair> immediate_pairs(const Operation& operation) {
  std::vector<ImmediatePair> pairs;
  for (const int64_t first : immediate_values(operation.immediates[0]))
    for (const int64_t second : immediate_values(operation.immediates[1]))
      pairs.push_back({first, second});
  return pairs;
}

}  // namespace

Result reference_result(const Operation& operation, const Operands& operands) {
  const Formula& formula = operation.formula;
  const NanRule rule = nan_rule(operation.isa);
  const int bytes = type_bytes(formula.type());
  switch (formula.target()) {
    case Target::kVector: {
      Result result(register_bytes(operation));
      for (int n = 0; n < operation.vector_bytes / bytes; ++n)
        store_element(result.data(), formula.type(), n, formula.evaluate(operands, n, rule));
      return result;
    }
    case Target::kMemory: {
      Result result(kMemoryBytes);
      for (int n = -kMemoryPointer / bytes; n < (kMemoryBytes - kMemoryPointer) / bytes; ++n)
        store_element(result.data() + kMemoryPointer, formula.type(), n,
                      formula.evaluate(operands, n, rule));
      return result;
    }
    case Target::kGeneral:
      return bytes_of(static_cast<uint64_t>(formula.evaluate(operands, 0, rule)), 8);
    case Target::kMask:
      return bytes_of(reference_mask(operation, operands, rule), 8);
    case Target::kFlags:
      return bytes_of(static_cast<uint64_t>(formula.evaluate(operands, 0, rule)), 1);
    case Target::kNone:
      break;
  }
  return {};
}

Execution execute(const Operation& operation, const Operands& operands, size_t which,
                  Runner* runner) {
  Frame frame;
  fill_frame(operands, &frame);
  Execution execution;
  execution.ending = runner->run(which, &frame);
  if (execution.ending != Ending::kDone) return execution;
  switch (operation.formula.target()) {
    case Target::kVector:
      execution.result.assign(frame.vector_out, frame.vector_out + register_bytes(operation));
      break;
    case Target::kMemory:
      execution.result.assign(frame.memory, frame.memory + kMemoryBytes);
      break;
    case Target::kGeneral:
      execution.result = bytes_of(frame.general_out, 8);
      break;
    case Target::kMask:
      execution.result = bytes_of(frame.mask_out, 8);
      break;
    case Target::kFlags:
      execution.result =
          bytes_of(frame.flags_out & (is_loongarch(operation.isa) ? 1 : kX86Flags), 1);
      break;
    case Target::kNone:
      break;
  }
  return execution;
}

Comparison compare_results(const Operation& operation, const Result& expected, const Result& got) {
  Comparison comparison;
  const Target target = operation.formula.target();
  if (target != Target::kVector && target != Target::kMemory) {
    comparison.cases = 1;
    comparison.mismatches = expected != got ? 1 : 0;
    return comparison;
  }
  const Type type = operation.formula.type();
  const size_t width =
      target == Target::kVector ? static_cast<size_t>(operation.vector_bytes) : expected.size();
  for (int n = 0; n < static_cast<int>(width) / type_bytes(type); ++n)
    compare_element(operation, load_element(expected.data(), type, n),
                    load_element(got.data(), type, n), &comparison);
  if (!std::equal(expected.begin() + static_cast<std::ptrdiff_t>(width), expected.end(),
                  got.begin() + static_cast<std::ptrdiff_t>(width), got.end()))
    ++comparison.mismatches;
  return comparison;
}

const char* status_name(Status status) {
  constexpr const char* kNames[] = {"ok", "MISMATCH", "ILLEGAL", "FAULT", "absent"};
  return kNames[static_cast<int>(status)];
}

size_t vectors_of(const Operation& operation, const VerifyOptions& options) {
  return std::max(static_cast<size_t>(options.vectors), immediate_pairs(operation).size());
}

OperationReport verify_operation(const Operation& operation, const VerifyOptions& options,
                                 Runner* runner, const VectorSink& sink) {
  OperationReport report;
  report.operation = &operation;
  const std::vector<ImmediatePair> pairs = immediate_pairs(operation);
  std::vector<std::vector<uint8_t>> functions;
  for (const ImmediatePair& pair : pairs)
    functions.push_back(make_function(operation, pair.first, pair.second));
  runner->load(functions);
  Inputs inputs(operation, options.seed);
  const size_t vectors = vectors_of(operation, options);
  for (size_t v = 0; v < vectors; ++v) {
    if (v % kLookEvery == 0) check_stop();
    const size_t which = v % pairs.size();
    const Operands operands = inputs.next(pairs[which].first, pairs[which].second);
    const Result expected = reference_result(operation, operands);
    const Execution got = execute(operation, operands, which, runner);
    ++report.vectors;
    bool failed = got.ending != Ending::kDone;
    if (!failed) {
      const Comparison compared = compare_results(operation, expected, got.result);
      report.cases += compared.cases;
      report.mismatches += compared.mismatches;
      report.worst_ulp = std::max(report.worst_ulp, compared.worst_ulp);
      failed = compared.mismatches > 0;
    }
    if (failed) ++report.failing_vectors;
    const bool absent = got.ending == Ending::kIllegal && operation.optional;
    if (sink && !absent) sink({operation, operands, expected, got, failed});
    if (got.ending == Ending::kDone) continue;
    report.status = absent                           ? Status::kAbsent
                    : got.ending == Ending::kIllegal ? Status::kIllegal
                                                     : Status::kFault;
    return report;
  }
  if (report.mismatches > 0) report.status = Status::kMismatch;
  return report;
}

std::vector<const Operation*> select_operations(const std::vector<Operation>& operations,
                                                const VerifyOptions& options) {
  for (const std::string& pattern : options.patterns) {
    VerifyOptions one = options;
    one.patterns = {pattern};
    if (std::none_of(operations.begin(), operations.end(),
                     [&](const Operation& operation) { return matches(operation, one); }))
      throw_usage("no operation here is called " + pattern,
                  "patterns are of mnemonics, as vadd.* or vfmadd*; --list shows them");
  }
  std::vector<const Operation*> selected;
  for (const Operation& operation : operations)
    if (matches(operation, options)) selected.push_back(&operation);
  return selected;
}

bool can_run(Isa isa) {
  // Less than the kernels need: what the rows are made of, extensions being optional.
  constexpr struct {
    Isa isa;
    const char* needs;
  } kRows[] = {{Isa::kAvx2, "avx2"},
               {Isa::kAvx512, "avx512f avx512bw"},
               {Isa::kLsx, "lsx"},
               {Isa::kLasx, "lasx"}};
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const auto& row) {
    return row.isa == isa && kernels::cpu().has(row.needs);
  });
}

std::string why_not_run(Isa isa) {
  if (can_run(isa)) return {};
#if defined(__x86_64__)
  const bool here = !is_loongarch(isa);
#else
  const bool here = is_loongarch(isa);
#endif
  if (here)
    return std::string("this CPU has no ") + kernels::isa_name(isa) +
           ", or firmware or kernel keep it off";
  return std::string("it is of ") + (is_loongarch(isa) ? "LoongArch" : "x86-64") +
         ", and this is another machine";
}

}  // namespace loongforge::isa_verify
