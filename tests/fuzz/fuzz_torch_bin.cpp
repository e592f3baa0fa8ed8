// A torch file: the zip around it, the pickle in it, strided and shared storages.
#include "formats/torch_file.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  const auto file = fuzz::folder().write("pytorch_model.bin", {data, size});
  fuzz::expect_clean(file.string(), [&] { fuzz::read_all(formats::TorchFile(file)); });
  return 0;
}
