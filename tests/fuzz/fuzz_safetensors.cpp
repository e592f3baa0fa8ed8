// A .safetensors file: header, table, data.
#include "formats/safetensors.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  const auto file = fuzz::folder().write("model.safetensors", {data, size});
  fuzz::expect_clean(file.string(), [&] { fuzz::read_all(formats::SafetensorsFile(file)); });
  return 0;
}
