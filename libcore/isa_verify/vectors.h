// Vectors on file: operands of an operation with what was expected and what a chip made of them,
// one JSON object a line (man/loongforge-debug.1 describes the members). Files of several chips can
// be joined. Thread-safety: values; a VectorFile belongs to one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "isa_verify/verify.h"
#include "support/json.h"

namespace loongforge::isa_verify {

struct SavedVector {
  kernels::Isa isa = kernels::Isa::kScalar;
  std::string form;  // Operation::form()
  Operands operands;
  Result expected, got;
  Ending ending = Ending::kDone;  // got is empty unless kDone
  std::string chip;
  std::string place;                // "file:line"
  std::vector<std::string> absent;  // keys of operands and immediates that it does not have: zeros

  bool lacks(std::string_view key_name) const;

  // The same for the same operands of the same operation, whichever chip ran it.
  std::string key() const;
};

LF_API support::Json vector_json(const Operation& operation, const Operands& operands,
                                 const Result& expected, const Execution& got,
                                 const std::string& chip);
// Error(kBadData) "<where>: ..." for what is no vector.
SavedVector parse_vector(std::string_view line, const std::string& where);
inline constexpr uint64_t kMostVectorBytes = uint64_t{1} << 30;  // of a file
// In the order of the file, which may hold none.
LF_API std::vector<SavedVector> read_vectors(const std::filesystem::path& path);

// An upper bound of what vectors of all that these options run take as a file.
LF_API uint64_t vector_bytes(const std::vector<const Operation*>& operations,
                             const VerifyOptions& options, const std::string& chip);

// A file of vectors being written; it appears under its name when it is complete.
class LF_API VectorFile {
 public:
  // Error(kUsage) when anything stands at the path: it may be what another chip left, or no
  // vectors.
  explicit VectorFile(const std::filesystem::path& path);
  void add(const support::Json& vector);
  void commit();
  uint64_t count() const { return count_; }

 private:
  void flush();
  AtomicFile file_;
  std::string pending_;
  uint64_t count_ = 0;
};

// One operation's vectors out of a file, run again here.
struct ReplayReport {
  std::string isa, form;
  uint64_t vectors = 0, cases = 0, mismatches = 0;
  uint64_t failing_vectors = 0;
  uint64_t as_recorded = 0;      // left what the file's chip left
  uint64_t other_reference = 0;  // the file expects something else than this table's formula
  uint64_t worst_ulp = 0;
  bool float_result = false;
  Status status = Status::kPassed;
  std::string not_run;  // why it was not: another CPU's, in no table; empty: it was
};
LF_API std::vector<ReplayReport> replay_vectors(const std::vector<SavedVector>& vectors,
                                                const std::vector<Operation>& operations);

// One operation's vectors in two files.
struct DiffReport {
  std::string isa, form;
  uint64_t same = 0, different = 0, only_first = 0, only_second = 0;
};
LF_API std::vector<DiffReport> diff_vectors(const std::vector<SavedVector>& first,
                                            const std::vector<SavedVector>& second);

}  // namespace loongforge::isa_verify
