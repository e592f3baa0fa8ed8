// What this process may use of the machine: cores, caches, NUMA nodes and memory, within the
// affinity mask and the cgroup's limits.
// Thread-safety: read_machine() at the start of a command, before threads are bound (it reads the
// process's affinity mask, and sets HWLOC_HIDE_ERRORS so that hwloc prints nothing); a Machine is a
// value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/api.h"

namespace loongforge::topo {

struct NumaNode {
  int id;
  uint64_t memory_bytes;
  std::vector<int> cpus;  // within the affinity mask
};

struct LF_API Machine {
  std::string cpu_model;       // empty when unknown
  std::vector<int> cpus;       // hardware threads within the affinity mask, ascending
  std::vector<int> core_cpus;  // one hardware thread of each core that has one within the mask,
                               // neighbours together
  int machine_cores = 0;       // of the whole machine
  int machine_cpus = 0;
  double cpu_quota = 0;  // CPUs' worth of time that the cgroup grants; 0: no limit
  // Of one cache, the smallest among the usable cores; 0: unknown. *_cores: usable cores that share
  // one.
  uint64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  int l2_cores = 1, l3_cores = 1;
  int cache_line = 64;
  std::vector<NumaNode> nodes;
  uint64_t memory_total = 0;      // of the machine
  uint64_t memory_available = 0;  // of the machine, without pushing anything out
  uint64_t memory_limit = 0;      // the cgroup's; 0: no limit
  uint64_t memory_used = 0;       // by the group that sets memory_limit

  // One per usable core, not more than whole CPUs in the quota, at least 1.
  int default_threads() const noexcept;
  // One CPU number per thread to bind to: each core once, then the cores' other hardware threads,
  // then from the start.
  std::vector<int> binding(int threads) const;
  // What this process can still take: memory_available, within the cgroup's limit.
  uint64_t usable_memory() const noexcept;
};

// Other places to read from, for tests and for machines described by a file.
struct MachineSource {
  std::filesystem::path hwloc_xml;  // empty: this machine
  // Holds proc/self/{status,cgroup,mountinfo}, proc/meminfo and the cgroup folders.
  std::filesystem::path root = "/";
};

// Throws Error: kNoInput when hwloc_xml is absent, kBadData when it is no topology, kFailed when no
// CPU is usable.
LF_API Machine read_machine(const MachineSource& source = {});

// Writes this machine's topology as hwloc XML, to be read with hwloc_xml. Error(kFailed) when it
// cannot be written.
LF_API void dump_topology(const std::filesystem::path& path);

// "0-3,8" -> 0 1 2 3 8. False when text is no such list.
LF_API bool parse_cpu_list(const std::string& text, std::vector<int>* cpus);

}  // namespace loongforge::topo
