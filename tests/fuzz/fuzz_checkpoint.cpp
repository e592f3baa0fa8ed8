// A checkpoint's manifest.json and trainer_state.json: the first byte chooses which of them the rest is.
#include "fuzz.h"
#include "train/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  if (size == 0) return 0;
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path = fuzz::folder().path() / "checkpoint-1";
    std::filesystem::create_directory(path);
    const uint8_t bytes[] = {1, 2, 3, 4};
    fuzz::folder().write("checkpoint-1/optimizer.safetensors", bytes);
    return path;
  }();
  const bool manifest = data[0] % 2 == 0;
  fuzz::folder().write(manifest ? "checkpoint-1/manifest.json" : "checkpoint-1/trainer_state.json", {data + 1, size - 1});
  fuzz::expect_clean(folder.string(), [&] {
    if (manifest)
      train::verify_checkpoint(folder);
    else
      static_cast<void>(train::read_state(folder));
  });
  return 0;
}
