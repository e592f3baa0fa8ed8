#include "topo/machine.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using topo::Machine;
using topo::MachineSource;
using topo::read_machine;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

fs::path topology(const char* name) { return test::data_dir() / "topo" / name; }

// A machine of a file, with a mask and what stands in cpu.max.
Machine machine_of(const char* name, const std::string& mask,
                   const std::string& cpu_max = "max 100000") {
  test::TempDir dir;
  if (!mask.empty())
    put(dir / "proc/self/status",
        "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + mask + "\n");
  put(dir / "proc/meminfo",
      "MemTotal:       16000000 kB\nMemFree: 5 kB\nMemAvailable:   12000000 kB\n");
  put(dir / "proc/self/mountinfo", "35 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put(dir / "proc/self/cgroup", "0::/\n");
  put(dir / "sys/fs/cgroup/cpu.max", cpu_max);
  put(dir / "sys/fs/cgroup/memory.max", "6000000000");
  put(dir / "sys/fs/cgroup/memory.current", "1000000000");
  return read_machine({.hwloc_xml = topology(name), .root = dir.path()});
}

}  // namespace

TEST_CASE("machine: four cores of two threads") {
  Machine m = machine_of("four_cores_smt.xml", "0-7");
  CHECK(m.cpu_model == "Loongson-3A6000");
  CHECK(m.cpus == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(m.core_cpus == std::vector<int>{0, 2, 4, 6});
  CHECK(m.machine_cores == 4);
  CHECK(m.machine_cpus == 8);
  CHECK(m.default_threads() == 4);
  CHECK(m.binding(3) == std::vector<int>{0, 2, 4});
  CHECK(m.binding(9) == std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7, 0});
  CHECK(m.l1d_bytes == 65536);
  CHECK(m.l2_bytes == 262144);
  CHECK(m.l2_cores == 1);
  CHECK(m.l3_bytes == 16u << 20);
  CHECK(m.l3_cores == 4);
  CHECK(m.cache_line == 64);
  REQUIRE(m.nodes.size() == 1);
  CHECK(m.nodes[0].memory_bytes == uint64_t{16} << 30);
  CHECK(m.memory_total == 16000000ull << 10);
  CHECK(m.memory_available == 12000000ull << 10);
  CHECK(m.usable_memory() == 5000000000u);
}

TEST_CASE("machine: the affinity mask hides cores, threads and cache sharers") {
  Machine m = machine_of("four_cores_smt.xml", "1,4-5");
  CHECK(m.cpus == std::vector<int>{1, 4, 5});
  CHECK(m.core_cpus == std::vector<int>{1, 4});
  CHECK(m.default_threads() == 2);
  CHECK(m.l3_cores == 2);
  CHECK(m.machine_cores == 4);
  LF_CHECK_ERROR(machine_of("four_cores_smt.xml", "64-70"), ErrorCode::kFailed, "affinity mask");
  LF_CHECK_ERROR(machine_of("four_cores_smt.xml", "what"), ErrorCode::kBadData,
                 "Cpus_allowed_list");
  CHECK(machine_of("four_cores_smt.xml", "").cpus.size() == 8);
}

TEST_CASE("machine: the quota bounds the threads, never below one") {
  CHECK(machine_of("four_cores_smt.xml", "0-7", "200000 100000").default_threads() == 2);
  CHECK(machine_of("four_cores_smt.xml", "0-7", "250000 100000").default_threads() == 2);
  CHECK(machine_of("four_cores_smt.xml", "0-7", "50000 100000").default_threads() == 1);
  CHECK(machine_of("four_cores_smt.xml", "0-7", "900000 100000").default_threads() == 4);
  CHECK(machine_of("four_cores_smt.xml", "0-7", "50000 100000").cpu_quota == 0.5);
}

TEST_CASE("machine: nodes and sockets") {
  Machine m = machine_of("four_nodes.xml", "0-9");
  REQUIRE(m.nodes.size() == 4);
  CHECK(m.nodes[0].cpus == std::vector<int>{0, 1, 2, 3});
  CHECK(m.nodes[2].cpus == std::vector<int>{8, 9});
  CHECK(m.nodes[3].cpus.empty());
  CHECK(m.nodes[3].id == 3);
  CHECK(m.default_threads() == 10);

  m = machine_of("two_sockets_smt.xml", "0-31");
  CHECK(m.core_cpus.size() == 16);
  CHECK(m.core_cpus[1] == 1);
  CHECK(m.binding(17)[16] == 16);
  CHECK(m.l1d_bytes == 49152);
  CHECK(m.l3_cores == 8);
  CHECK(m.nodes.size() == 2);
  CHECK(machine_of("two_sockets_smt.xml", "16-19").core_cpus == std::vector<int>{16, 17, 18, 19});
}

TEST_CASE("machine: this one") {
  Machine m = read_machine();
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
  REQUIRE(!m.cpus.empty());
  for (int cpu : m.cpus) CHECK(CPU_ISSET(cpu, &mask));
  CHECK(static_cast<int>(m.cpus.size()) <= CPU_COUNT(&mask));
  CHECK(!m.core_cpus.empty());
  CHECK(m.core_cpus.size() <= m.cpus.size());
  CHECK(m.default_threads() >= 1);
  CHECK(m.memory_total > 0);
  CHECK(m.usable_memory() > 0);
  CHECK(m.usable_memory() <= m.memory_total);
  size_t nodes = 0;  // as the kernel counts them; those that a cgroup hides are not this process's
  for (int i = 0; fs::exists("/sys/devices/system/node/node" + std::to_string(i)); ++i) ++nodes;
  CHECK(!m.nodes.empty());
  CHECK(m.nodes.size() <= std::max<size_t>(nodes, 1));
  MESSAGE("NUMA nodes: " << m.nodes.size() << " of " << nodes);
}

TEST_CASE("machine: a dumped topology reads as the machine") {
  test::TempDir dir;
  topo::dump_topology(dir / "topology.xml");
  Machine live = read_machine();
  Machine read = read_machine({.hwloc_xml = dir / "topology.xml"});
  CHECK(read.cpus == live.cpus);
  CHECK(read.core_cpus == live.core_cpus);
  CHECK(read.l1d_bytes == live.l1d_bytes);
  CHECK(read.l2_bytes == live.l2_bytes);
  CHECK(read.l3_bytes == live.l3_bytes);
  CHECK(read.nodes.size() == live.nodes.size());
  CHECK(read.cpu_model == live.cpu_model);
  LF_CHECK_ERROR(topo::dump_topology(dir / "no" / "x.xml"), ErrorCode::kFailed, "x.xml");
}

TEST_CASE("machine: a wrong topology file is named") {
  test::TempDir dir;
  LF_CHECK_ERROR(read_machine({.hwloc_xml = dir / "absent.xml"}), ErrorCode::kNoInput,
                 "absent.xml");
  put(dir / "wrong.xml", "this is no topology\n");
  LF_CHECK_ERROR(read_machine({.hwloc_xml = dir / "wrong.xml"}), ErrorCode::kBadData, "wrong.xml");
  put(dir / "empty.xml", "");
  LF_CHECK_ERROR(read_machine({.hwloc_xml = dir / "empty.xml"}), ErrorCode::kBadData, "empty.xml");
  std::string half = read_text(topology("four_nodes.xml"));
  put(dir / "half.xml", half.substr(0, half.size() / 2));
  LF_CHECK_ERROR(read_machine({.hwloc_xml = dir / "half.xml"}), ErrorCode::kBadData, "half.xml");
}

TEST_CASE("machine: CPU lists") {
  std::vector<int> cpus;
  CHECK(topo::parse_cpu_list("0", &cpus));
  CHECK(cpus == std::vector<int>{0});
  CHECK(topo::parse_cpu_list("0-2,7,9-10", &cpus));
  CHECK(cpus == std::vector<int>{0, 1, 2, 7, 9, 10});
  for (const char* bad :
       {"", "a", "3-1", "1-", "-1", "1--2", "1,,2", "0-99999999999", "0-4000000000", "1x"}) {
    CHECK_FALSE(topo::parse_cpu_list(bad, &cpus));
  }
}
