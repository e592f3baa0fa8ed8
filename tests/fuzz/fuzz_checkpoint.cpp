// A checkpoint's manifest.json, trainer_state.json and loongforge_state.json: the first byte
// chooses which of them the rest is; the others are in order.
#include <array>
#include <cstring>

#include "fuzz.h"
#include "train/checkpoint.h"
#include "train/checkpoint_manifest.h"

namespace {

using namespace loongforge;

struct Part {
  const char* name;
  const char* good;
};
constexpr std::array<Part, 3> kFiles = {
    Part{"checkpoint-1/manifest.json", "{}"},
    Part{"checkpoint-1/trainer_state.json", R"({"global_step":1,"log_history":[]})"},
    Part{"checkpoint-1/loongforge_state.json", R"({"best":{"metric":null},"run":{}})"},
};

void put(const Part& file) {
  fuzz::folder().write(file.name,
                       {reinterpret_cast<const uint8_t*>(file.good), std::strlen(file.good)});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path = fuzz::folder().path() / "checkpoint-1";
    std::filesystem::create_directory(path);
    const uint8_t bytes[] = {1, 2, 3, 4};
    fuzz::folder().write("checkpoint-1/optimizer.safetensors", bytes);
    for (const Part& file : kFiles) put(file);
    return path;
  }();
  const size_t which = data[0] % kFiles.size();
  fuzz::folder().write(kFiles[which].name, {data + 1, size - 1});
  fuzz::expect_clean(folder.string(), [&] {
    if (which == 0)
      train::verify_checkpoint(folder);
    else
      static_cast<void>(train::read_state(folder));
  });
  put(kFiles[which]);
  return 0;
}
