// Resident memory of this process, as the kernel counts it (/proc/self/status).
// Thread-safety: safe from any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/api.h"

namespace loongforge {

struct ProcessMemory {
  uint64_t resident = 0;       // VmRSS, bytes
  uint64_t peak_resident = 0;  // VmHWM, bytes: the largest VmRSS since the start or the last reset
};

// status: another file of that form, for tests. Throws Error(kFailed) when it cannot be read or
// lacks the lines.
LF_API ProcessMemory process_memory(const std::filesystem::path& status = "/proc/self/status");

// Sets peak_resident to resident. False when the kernel does not allow it.
LF_API bool reset_peak_memory() noexcept;

// Returns what free() kept back to the system (malloc_trim), so that resident tells what is in use.
LF_API void release_free_memory() noexcept;

}  // namespace loongforge
