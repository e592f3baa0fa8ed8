// The pickle of a torch file by itself.
#include "formats/pickle.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  if (size > formats::kMaxPickleBytes) return 0;
  fuzz::expect_clean("pytorch_model.bin", [&] {
    static_cast<void>(formats::read_state_dict({data, size}, "pytorch_model.bin"));
  });
  return 0;
}
