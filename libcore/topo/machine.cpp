#include "topo/machine.h"

#include <hwloc.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "topo/cgroup.h"

namespace loongforge::topo {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxCpu = 1 << 16;

struct CloseTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, CloseTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Topology load_topology(const fs::path& xml) {
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw_failed({}, "hwloc does not start");
  Topology topology(raw);
  if (!xml.empty()) {
    File::open_read(xml);  // an Error that says why when it cannot be read
    if (hwloc_topology_set_xml(raw, xml.c_str()) != 0) {
      throw_bad_data(xml.string(), "is not an hwloc topology");
    }
  }
  if (hwloc_topology_load(raw) != 0) {
    if (!xml.empty()) throw_bad_data(xml.string(), "is not an hwloc topology");
    throw_failed({}, "hwloc cannot read this machine's topology");
  }
  return topology;
}

// The value of "key: value" in a file of such lines.
std::optional<std::string> value_of(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size(), key) != 0 || line.size() <= key.size() ||
        line[key.size()] != ':')
      continue;
    size_t at = line.find_first_not_of(" \t", key.size() + 1);
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return std::nullopt;
}

uint64_t meminfo_bytes(const fs::path& root, std::string_view key) {
  std::string text = value_of(root / "proc/meminfo", key).value_or("");
  uint64_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib << 10;
}

// The CPUs of the topology within the affinity mask.
Bitmap usable_cpus(hwloc_topology_t topology, const MachineSource& source) {
  Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  fs::path status = source.root / "proc/self/status";
  if (auto text = value_of(status, "Cpus_allowed_list")) {
    std::vector<int> mask;
    if (!parse_cpu_list(*text, &mask))
      throw_bad_data(status.string(), "Cpus_allowed_list is not understood");
    Bitmap allowed(hwloc_bitmap_alloc());
    for (int cpu : mask) hwloc_bitmap_set(allowed.get(), static_cast<unsigned>(cpu));
    hwloc_bitmap_and(usable.get(), usable.get(), allowed.get());
  }
  if (hwloc_bitmap_iszero(usable.get())) {
    throw_failed({}, "no CPU of the topology is in this process's affinity mask");
  }
  return usable;
}

std::vector<int> list_of(hwloc_const_bitmap_t set) {
  std::vector<int> out;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) out.push_back(i);
  return out;
}

int count_cores(hwloc_topology_t topology, hwloc_const_bitmap_t within) {
  int cores = 0;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    if (hwloc_bitmap_intersects(core->cpuset, within)) ++cores;
  }
  return cores;
}

void read_cores(hwloc_topology_t topology, hwloc_const_bitmap_t usable, Machine* machine) {
  machine->cpus = list_of(usable);
  machine->machine_cpus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  machine->machine_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  Bitmap left(hwloc_bitmap_dup(usable));
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    for (int cpu : list_of(core->cpuset)) {
      if (!hwloc_bitmap_isset(left.get(), static_cast<unsigned>(cpu))) continue;
      machine->core_cpus.push_back(cpu);
      break;
    }
    hwloc_bitmap_andnot(left.get(), left.get(), core->cpuset);
  }
  // Some virtual machines show hardware threads without cores: each is one.
  for (int cpu : list_of(left.get())) machine->core_cpus.push_back(cpu);
  if (machine->machine_cores <= 0) machine->machine_cores = machine->machine_cpus;
}

void read_cache(hwloc_topology_t topology, hwloc_const_bitmap_t usable, hwloc_obj_type_t type,
                uint64_t* bytes, int* cores, int* line) {
  for (hwloc_obj_t cache = nullptr;
       (cache = hwloc_get_next_obj_by_type(topology, type, cache)) != nullptr;) {
    if (!hwloc_bitmap_intersects(cache->cpuset, usable) || cache->attr->cache.size == 0) continue;
    if (*bytes == 0 || cache->attr->cache.size < *bytes) *bytes = cache->attr->cache.size;
    Bitmap shared(hwloc_bitmap_alloc());
    hwloc_bitmap_and(shared.get(), cache->cpuset, usable);
    if (cores != nullptr) *cores = std::max(*cores, count_cores(topology, shared.get()));
    if (line != nullptr && cache->attr->cache.linesize != 0) {
      *line = static_cast<int>(cache->attr->cache.linesize);
    }
  }
}

void read_nodes(hwloc_topology_t topology, hwloc_const_bitmap_t usable, Machine* machine) {
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    Bitmap cpus(hwloc_bitmap_alloc());
    hwloc_bitmap_and(cpus.get(), node->cpuset, usable);
    machine->nodes.push_back(
        {static_cast<int>(node->os_index), node->attr->numanode.local_memory, list_of(cpus.get())});
  }
}

std::string read_model(hwloc_topology_t topology) {
  hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  for (hwloc_obj_t object : {package, hwloc_get_root_obj(topology)}) {
    const char* model =
        object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, "CPUModel");
    if (model != nullptr) return model;
  }
  return {};
}

}  // namespace

bool parse_cpu_list(const std::string& text, std::vector<int>* cpus) {
  cpus->clear();
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    int first = 0, last = 0;
    const char* end = part.data() + part.size();
    auto got = std::from_chars(part.data(), end, first);
    if (got.ec != std::errc()) return false;
    last = first;
    if (got.ptr != end) {
      if (*got.ptr != '-') return false;
      got = std::from_chars(got.ptr + 1, end, last);
      if (got.ec != std::errc() || got.ptr != end) return false;
    }
    if (first < 0 || last < first || last >= kMaxCpu) return false;
    for (int cpu = first; cpu <= last; ++cpu) cpus->push_back(cpu);
  }
  return !cpus->empty();
}

Machine read_machine(const MachineSource& source) {
  Topology topology = load_topology(source.hwloc_xml);
  Bitmap usable = usable_cpus(topology.get(), source);
  Machine machine;
  machine.cpu_model = read_model(topology.get());
  read_cores(topology.get(), usable.get(), &machine);
  read_cache(topology.get(), usable.get(), HWLOC_OBJ_L1CACHE, &machine.l1d_bytes, nullptr,
             &machine.cache_line);
  read_cache(topology.get(), usable.get(), HWLOC_OBJ_L2CACHE, &machine.l2_bytes, &machine.l2_cores,
             nullptr);
  read_cache(topology.get(), usable.get(), HWLOC_OBJ_L3CACHE, &machine.l3_bytes, &machine.l3_cores,
             nullptr);
  read_nodes(topology.get(), usable.get(), &machine);
  machine.memory_total = meminfo_bytes(source.root, "MemTotal");
  machine.memory_available = meminfo_bytes(source.root, "MemAvailable");
  CgroupLimits limits = read_cgroup_limits(source.root);
  machine.cpu_quota = limits.cpus;
  machine.memory_limit = limits.memory_limit;
  machine.memory_used = limits.memory_used;
  return machine;
}

int Machine::default_threads() const noexcept {
  auto cores = static_cast<double>(core_cpus.size());
  double threads = cpu_quota > 0 ? std::min(cores, std::floor(cpu_quota)) : cores;
  return std::max(1, static_cast<int>(threads));
}

std::vector<int> Machine::binding(int threads) const {
  std::vector<int> order = core_cpus;
  for (int cpu : cpus) {
    if (std::find(core_cpus.begin(), core_cpus.end(), cpu) == core_cpus.end()) order.push_back(cpu);
  }
  std::vector<int> out;
  for (int i = 0; i < threads; ++i) out.push_back(order[static_cast<size_t>(i) % order.size()]);
  return out;
}

uint64_t Machine::usable_memory() const noexcept {
  if (memory_limit == 0) return memory_available;
  uint64_t within = memory_limit > memory_used ? memory_limit - memory_used : 0;
  return std::min(memory_available, within);
}

void dump_topology(const fs::path& path) {
  Topology topology = load_topology({});
  char* text = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0) {
    throw_failed(path.string(), "hwloc cannot describe this machine");
  }
  // length counts the final zero.
  std::string xml(text, length > 0 ? static_cast<size_t>(length) - 1 : 0);
  hwloc_free_xmlbuffer(topology.get(), text);
  write_text_atomic(path, xml);
}

}  // namespace loongforge::topo
