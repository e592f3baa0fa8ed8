#include "base/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/error.h"

namespace loongforge {
namespace {

// "VmRSS:      1234 kB" -> bytes.
std::optional<uint64_t> kib_line(const std::string& line, std::string_view key) {
  if (line.compare(0, key.size(), key) != 0) return std::nullopt;
  size_t at = line.find_first_not_of(" \t", key.size());
  if (at == std::string::npos) return std::nullopt;
  uint64_t kib = 0;
  if (std::from_chars(line.data() + at, line.data() + line.size(), kib).ec != std::errc()) {
    return std::nullopt;
  }
  return kib << 10;
}

}  // namespace

ProcessMemory process_memory(const std::filesystem::path& status) {
  std::ifstream in(status);
  std::optional<uint64_t> resident, peak;
  for (std::string line; std::getline(in, line);) {
    if (auto bytes = kib_line(line, "VmRSS:")) resident = bytes;
    if (auto bytes = kib_line(line, "VmHWM:")) peak = bytes;
  }
  if (!resident || !peak) throw_failed(status.string(), "has no VmRSS and VmHWM lines");
  return {*resident, *peak};
}

bool reset_peak_memory() noexcept {
  int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool done = write(fd, "5", 1) == 1;  // 5: reset the peak resident set size (proc(5))
  close(fd);
  return done;
}

void release_free_memory() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace loongforge
