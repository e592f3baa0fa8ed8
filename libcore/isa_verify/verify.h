// Runs operations on this CPU and compares them with their reference, element by element.
// Thread-safety: as Runner; what is returned are values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isa_verify/operation.h"
#include "isa_verify/runner.h"

namespace loongforge::isa_verify {

// What an operation leaves in its target, as bytes: a vector register (x86: all of it, above the
// operation's width it must be zero), the memory operand, 8 bytes of a general or mask register, or
// the flags that count (x86: ZF, PF, CF).
using Result = std::vector<uint8_t>;

Result reference_result(const Operation& operation, const Operands& operands);

struct Execution {
  Ending ending = Ending::kDone;
  Result result;  // empty unless kDone
};
// REQUIRES runner.load() of the operation's functions; which: the one with the operands'
// immediates.
Execution execute(const Operation& operation, const Operands& operands, size_t which,
                  Runner* runner);

struct Comparison {
  uint64_t cases = 0, mismatches = 0;  // elements
  uint64_t worst_ulp = 0;              // floating-point results: over all elements; else 0
};
Comparison compare_results(const Operation& operation, const Result& expected, const Result& got);

enum class Status : uint8_t { kPassed, kMismatch, kIllegal, kFault, kAbsent };
LF_API const char* status_name(Status status);

struct OperationReport {
  const Operation* operation = nullptr;
  uint64_t vectors = 0;  // executions
  uint64_t cases = 0, mismatches = 0;
  uint64_t failing_vectors = 0;
  uint64_t worst_ulp = 0;
  Status status = Status::kPassed;  // kAbsent: illegal, and the row says that it may be

  bool failed() const { return status != Status::kPassed && status != Status::kAbsent; }
};

struct VerifyOptions {
  std::vector<kernels::Isa> isas;
  std::vector<std::string> patterns;  // of mnemonics, * and ?; empty: all
  uint64_t seed = 1;
  int vectors = 256;  // executions of each operation; at least one for each immediate
};

struct TriedVector {
  const Operation& operation;
  const Operands& operands;
  const Result& expected;
  const Execution& got;
  bool failed;
};
using VectorSink = std::function<void(const TriedVector&)>;

// How many executions of it there are: those asked for, at least one for each immediate.
size_t vectors_of(const Operation& operation, const VerifyOptions& options);
// Ends early where check_stop() does.
LF_API OperationReport verify_operation(const Operation& operation, const VerifyOptions& options,
                                        Runner* runner, const VectorSink& sink);

// Those of the ISAs and patterns, in their order. Error(kUsage) when a pattern matches none.
LF_API std::vector<const Operation*> select_operations(const std::vector<Operation>& operations,
                                                       const VerifyOptions& options);

// Whether machine code of this ISA can be run here: the CPU has it and the system saves its
// registers. For avx512: F and BW at least.
LF_API bool can_run(kernels::Isa isa);
// Why it cannot be, for an error; empty: it can.
LF_API std::string why_not_run(kernels::Isa isa);

}  // namespace loongforge::isa_verify
