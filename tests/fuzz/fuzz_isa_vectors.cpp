// Files of saved vectors, as --replay and --diff read them.
#include "fuzz.h"
#include "isa_verify/vectors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  const std::filesystem::path path = fuzz::folder().write("vectors.jsonl", {data, size});
  fuzz::expect_clean(path.string(), [&] {
    const std::vector<isa_verify::SavedVector> vectors = isa_verify::read_vectors(path);
    uint64_t other = 0;
    for (const isa_verify::DiffReport& report : isa_verify::diff_vectors(vectors, vectors))
      other += report.different + report.only_first + report.only_second;
    if (other > 0) fuzz::finding("a file differs from itself");
  });
  return 0;
}
