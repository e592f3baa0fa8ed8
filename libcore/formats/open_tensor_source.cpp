#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/sharded.h"
#include "formats/torch_file.h"

namespace loongforge::formats {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> gguf_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::path& entry : folder_entries(folder))
    if (entry.extension() == ".gguf") found.push_back(entry);
  return found;
}

bool begins_with_gguf(const fs::path& path) {
  const File file = File::open_read(path);
  uint8_t magic[4];
  if (file.size() < sizeof magic) return false;
  file.read_at(0, magic);
  return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

}  // namespace

std::unique_ptr<TensorSource> open_tensor_source(const fs::path& path) {
  if (folder_exists(path)) {
    if (holds_hf_checkpoint(path)) return open_hf_checkpoint(path);
    const std::vector<fs::path> found = gguf_files(path);
    if (found.size() == 1) return std::make_unique<GgufFile>(found[0]);
    if (found.size() > 1) {
      throw_bad_data(path.string(), "holds " + std::to_string(found.size()) + " GGUF files",
                     "name one of them");
    }
    return open_hf_checkpoint(path);  // says what is missing
  }
  if (begins_with_gguf(path)) return std::make_unique<GgufFile>(path);
  if (path.extension() == ".gguf")
    return std::make_unique<GgufFile>(path);  // says what is wrong with it
  if (path.filename().string().find(".index.json") != std::string::npos)
    return std::make_unique<ShardedCheckpoint>(path);
  const fs::path kind = path.extension();
  if (kind == ".bin" || kind == ".pt" || kind == ".pth" || begins_with_zip(path))
    return std::make_unique<TorchFile>(path);
  return std::make_unique<SafetensorsFile>(path);
}

}  // namespace loongforge::formats
