// Rows of --ops: read, listed as text, and their formulas evaluated. What they encode is not run.
#include "fuzz.h"
#include "isa_verify/inputs.h"
#include "isa_verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  fuzz::expect_clean("rows.ops", [&] {
    const std::vector<isa_verify::Operation> operations =
        isa_verify::parse_operations(fuzz::text_of(data, size), "rows.ops");
    constexpr size_t kMost = 8;
    for (size_t i = 0; i < std::min(operations.size(), kMost); ++i) {
      const isa_verify::Operation& operation = operations[i];
      isa_verify::Inputs inputs(operation, 1);
      const int64_t first = isa_verify::immediate_values(operation.immediates[0]).front();
      const int64_t second = isa_verify::immediate_values(operation.immediates[1]).back();
      isa_verify::assembly(operation, first, second);
      isa_verify::encode(operation, first, second);
      isa_verify::reference_result(operation, inputs.next(first, second));
    }
  });
  return 0;
}
