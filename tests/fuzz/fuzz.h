// What the fuzz targets share. A target hands hostile bytes to a reader; whatever they are, the
// reader either takes them or ends in one Error: exit code 65, one line, the file named in it.
// Anything else (another exception, another code, memory out of bounds, too much of it, too long)
// is a finding.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/quantized_source.h"
#include "formats/tensor_source.h"

namespace loongforge::fuzz {

[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::abort();
}

// Runs f; an Error that it throws must read as the commands promise. name: what its line must hold.
template <class F>
void expect_clean(std::string_view name, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string line = e.what();
    if (e.code() != ErrorCode::kBadData)
      finding("exit code " + std::to_string(static_cast<int>(e.code())) + ": " + line);
    if (line.find('\n') != std::string::npos) finding("more than one line: " + line);
    if (line.size() > 3100) finding("a line of " + std::to_string(line.size()) + " bytes");
    if (line.find(name) == std::string::npos) finding("does not name the file: " + line);
  }
}

// A folder of this process in memory; gone at its end.
class Folder {
 public:
  Folder() {
    std::string name =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/lf-fuzz-XXXXXX" : "/tmp/lf-fuzz-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) finding("cannot make " + name);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const char* name, std::span<const uint8_t> bytes) const {
    const std::filesystem::path file = path_ / name;
    const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      finding("cannot write " + file.string());
    close(fd);
    return file;
  }

 private:
  std::filesystem::path path_;
};

// The one folder of a target.
inline const Folder& folder() {
  static const Folder one;
  return one;
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Reads every tensor to its end, in pieces: what opening promised must hold.
inline void read_all(const formats::TensorSource& source) {
  constexpr int64_t kMost = int64_t{1} << 20;  // values in all: fuzzing is about many small files
  int64_t left = kMost;
  const auto* quantized = dynamic_cast<const formats::QuantizedSource*>(&source);
  for (const formats::StoredTensor& tensor : source.tensors()) {
    std::vector<uint8_t> bytes(std::min<uint64_t>(tensor.bytes, 4096));
    if (quantized == nullptr ||
        quantized->quantized(tensor) == nullptr) {  // else bytes are no elements
      source.read_range(tensor, 0, bytes);
      source.read_range(tensor, tensor.bytes - bytes.size(), bytes);
    }
    if (!source.readable_f32(tensor) || tensor.elements() > left || tensor.elements() == 0)
      continue;
    left -= tensor.elements();
    const std::vector<float> values = source.read_f32(tensor);
    if (values.size() != static_cast<size_t>(tensor.elements()))
      finding("a tensor of another size");
  }
}

}  // namespace loongforge::fuzz
