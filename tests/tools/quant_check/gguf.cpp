// gguf/<name>.gguf beside <name>.safetensors: every tensor dequantised, against its values.
#include "formats/gguf.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/safetensors.h"
#include "tools/quant_check/report.h"

namespace loongforge::quant_check {
namespace {

namespace fs = std::filesystem;

void check_file(const fs::path& path, Report* report) {
  const formats::GgufFile file(path);
  fs::path values = path;
  const formats::SafetensorsFile expected(values.replace_extension(".safetensors"));
  for (const formats::StoredTensor& tensor : file.tensors()) {
    const std::string name =
        path.filename().string() + " " + tensor.name + " (" + tensor.type + ")";
    const formats::StoredTensor* wanted = expected.find(tensor.name);
    if (wanted == nullptr) {
      report->line(name, false, "its values are not in " + values.filename().string());
    } else if (!file.readable_f32(tensor)) {
      report->line(name, false, "the type cannot be read");
    } else if (tensor.shape != wanted->shape) {
      report->line(name, false, "its shape is another");
    } else {
      report->same_values(name, file.read_f32(tensor), expected.read_f32(*wanted));
    }
  }
  for (const formats::StoredTensor& wanted : expected.tensors()) {
    if (file.find(wanted.name) == nullptr)
      report->line(wanted.name, false, "is not in " + path.filename().string());
  }
}

}  // namespace

void check_gguf(const fs::path& dir, Report* report) {
  report->begin("gguf: tensors of each block type, dequantised");
  std::vector<fs::path> files;
  if (fs::is_directory(dir / "gguf")) {
    for (const fs::directory_entry& entry : fs::directory_iterator(dir / "gguf")) {
      if (entry.path().extension() == ".gguf") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) report->absent(dir / "gguf/*.gguf");
  for (const fs::path& path : files) check_file(path, report);
}

}  // namespace loongforge::quant_check
