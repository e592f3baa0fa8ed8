// The CPU quota and memory limit that this process's cgroups set, version 1, 2 and both side by
// side. The tightest of the process's group and all above it that are visible counts.
// Thread-safety: pure reading.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/api.h"

namespace loongforge::topo {

struct CgroupLimits {
  double cpus = 0;            // quota / period; 0: no limit
  uint64_t memory_limit = 0;  // bytes; 0: no limit
  // Of the group that sets the limit, without file cache that is easily given up.
  uint64_t memory_used = 0;
};

// root: where proc/self/cgroup, proc/self/mountinfo and the mounted cgroup folders are looked for.
// Files that are absent or not understood set no limit.
LF_API CgroupLimits read_cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace loongforge::topo
