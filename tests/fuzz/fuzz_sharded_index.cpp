// model.safetensors.index.json beside two shards that are in order.
#include "formats/sharded.h"
#include "fuzz.h"

namespace {

using namespace loongforge;

const std::filesystem::path& prepared() {
  static const std::filesystem::path path = [] {
    // {"a": F32[2], "b": F32[1]} and {"c": F32[1]}
    const auto shard = [](const char* name, std::string header, size_t bytes) {
      while (header.size() % 8 != 0) header += ' ';
      std::string file(8, '\0');
      file[0] = static_cast<char>(header.size());
      file += header + std::string(bytes, '\0');
      fuzz::folder().write(name, {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
    };
    shard(
        "model-00001-of-00002.safetensors",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
        12);
    shard("model-00002-of-00002.safetensors",
          R"({"c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
    return fuzz::folder().path();
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::filesystem::path& folder = prepared();
  fuzz::folder().write("model.safetensors.index.json", {data, size});
  fuzz::expect_clean(folder.string(),
                     [&] { fuzz::read_all(*formats::open_hf_checkpoint(folder)); });
  return 0;
}
