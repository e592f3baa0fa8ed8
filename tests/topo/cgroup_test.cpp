#include "topo/cgroup.h"

#include <doctest/doctest.h>

#include <fstream>

#include "support/temp_dir.h"

using loongforge::test::TempDir;
using loongforge::topo::CgroupLimits;
using loongforge::topo::read_cgroup_limits;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

constexpr std::string_view kV2Mount =
    "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

}  // namespace

TEST_CASE("cgroup v2: the tightest limit on the way up counts") {
  TempDir dir;
  put(dir / "proc/self/mountinfo", kV2Mount);
  put(dir / "proc/self/cgroup", "0::/user.slice/job.scope\n");
  fs::path base = dir / "sys/fs/cgroup/user.slice";
  put(base / "cpu.max", "250000 100000\n");
  put(base / "memory.max", "8589934592\n");
  put(base / "memory.current", "3000000000\n");
  put(base / "memory.stat", "anon 1\nfile 2\ninactive_file 1000000000\n");
  put(base / "job.scope/cpu.max", "max 100000\n");
  put(base / "job.scope/memory.max", "max\n");
  CgroupLimits limits = read_cgroup_limits(dir.path());
  CHECK(limits.cpus == 2.5);
  CHECK(limits.memory_limit == 8589934592u);
  CHECK(limits.memory_used == 2000000000u);

  put(base / "job.scope/cpu.max", "50000 100000\n");
  put(base / "job.scope/memory.max", "4294967296\n");
  put(base / "job.scope/memory.current", "100\n");
  limits = read_cgroup_limits(dir.path());
  CHECK(limits.cpus == 0.5);
  CHECK(limits.memory_limit == 4294967296u);
  CHECK(limits.memory_used == 100);
}

TEST_CASE("cgroup v2: inside a container's namespace the mount's root is the group") {
  TempDir dir;
  put(dir / "proc/self/mountinfo", kV2Mount);
  put(dir / "sys/fs/cgroup/cpu.max", "400000 100000");
  for (const char* group : {"0::/\n", "0::/../outside\n"}) {
    put(dir / "proc/self/cgroup", group);
    CHECK(read_cgroup_limits(dir.path()).cpus == 4.0);
  }
}

TEST_CASE("cgroup v1: quota and limit of their own hierarchies") {
  TempDir dir;
  put(dir / "proc/self/mountinfo",
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "35 31 0:32 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  put(dir / "proc/self/cgroup", "4:memory:/a/b\n3:cpuset:/\n2:cpu,cpuacct:/a\n0::/\n");
  put(dir / "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put(dir / "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put(dir / "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
  put(dir / "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "200000\n");
  put(dir / "sys/fs/cgroup/my memory/memory.limit_in_bytes", "9223372036854771712\n");
  put(dir / "sys/fs/cgroup/my memory/a/b/memory.limit_in_bytes", "2000000000\n");
  put(dir / "sys/fs/cgroup/my memory/a/b/memory.usage_in_bytes", "500\n");
  put(dir / "sys/fs/cgroup/my memory/a/b/memory.stat", "cache 9\ntotal_inactive_file 600\n");
  CgroupLimits limits = read_cgroup_limits(dir.path());
  CHECK(limits.cpus == 1.5);
  CHECK(limits.memory_limit == 2000000000u);
  CHECK(limits.memory_used == 0);
}

TEST_CASE("cgroup v1: a container that sees only its part of the tree") {
  TempDir dir;
  put(dir / "proc/self/mountinfo",
      "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  put(dir / "proc/self/cgroup", "2:cpu:/docker/abc\n");
  put(dir / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put(dir / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(read_cgroup_limits(dir.path()).cpus == 2.0);
}

TEST_CASE("cgroup: nothing there, or nonsense, is no limit") {
  TempDir dir;
  CgroupLimits limits = read_cgroup_limits(dir.path());
  CHECK(limits.cpus == 0);
  CHECK(limits.memory_limit == 0);
  put(dir / "proc/self/mountinfo", std::string(kV2Mount) + "broken\n1 2 - \n");
  put(dir / "proc/self/cgroup", "broken\n0::/\n:\n");
  for (const char* text :
       {"", "max", "x y", "0 100000", "100000 0", "-5 100000", "99999999999999999999 1"}) {
    put(dir / "sys/fs/cgroup/cpu.max", text);
    put(dir / "sys/fs/cgroup/memory.max", text);
    limits = read_cgroup_limits(dir.path());
    CHECK(limits.cpus == 0);
  }
  put(dir / "sys/fs/cgroup/memory.max", "0");
  CHECK(read_cgroup_limits(dir.path()).memory_limit == 0);
}
