// scripts/setup_loongforge.sh, sourced and run, by bash and zsh, on made-up machines (a folder that
// stands for /, commands that answer as told) and on this one; as root and not; under emulation of
// LoongArch where the environment for it is there.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBiosError = "Error: LASX not enabled in BIOS\n";
constexpr const char* kGlibcError = "Error: glibc < 2.34, please update\n";
constexpr const char* kBiosPath = "Advanced -> CPU Configuration -> LASX Support";

fs::path script() { return source_dir() / "scripts" / "setup_loongforge.sh"; }

std::string slurp(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

// A machine that is ready: what the checks read, and the commands they ask.
class Machine {
 public:
  explicit Machine(const std::string& arch) {
    write_hwcap(0x7E);
    write(root() / "proc/sys/kernel/osrelease", "6.6.0-1-generic\n");
    write(root() / "proc/sys/vm/swappiness", "1\n");
    write(root() / "proc/sys/vm/vfs_cache_pressure", "100\n");
    write(root() / "proc/sys/net/core/somaxconn", "65535\n");
    write(root() / "proc/cpuinfo", "flags\t\t: fma avx2 avx512_bf16 avx512vbmi\n");
    write(root() / "proc/meminfo",
          "HugePages_Total:      4\nHugePages_Free:       3\nHugepagesize:      32768 kB\n");
    write(root() / "proc/self/cgroup", "0::/user.slice/session\n");
    write(root() / "proc/self/status", "Name:\tbash\nCpus_allowed_list:\t0-7\n");
    write(root() / "proc/cgroups",
          "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t1\t1\n");
    write(root() / "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
    write(root() / "sys/fs/cgroup/user.slice/session/cgroup.controllers", "cpuset memory\n");
    fs::create_directories(root() / "etc/sysctl.d");
    command("uname", "echo " + arch);
    command("getconf", "echo 'glibc 2.38'");
    command("g++", "case \" $* \" in *' -dumpfullversion '*) echo 14.2.0 ;; esac");
    command("df", "printf 'Filesystem 1024-blocks\\ntmpfs 8000000 0 8000000 0%% /dev/shm\\n'");
    command("modprobe", "exit 1");
    command("id", "echo 0");
    write(home() / "bin/loongforge", "#!/bin/sh\necho 'v0.4.0 (Test)'\n");
    executable(home() / "bin/loongforge");
  }

  fs::path root() const { return folder_ / "root"; }
  fs::path home() const { return folder_ / "home"; }
  void command(const std::string& name, const std::string& body) {
    write(folder_ / "bin" / name, "#!/bin/sh\n" + body + "\n");
    executable(folder_ / "bin" / name);
  }
  void parameter(const std::string& name, const std::string& text) {
    write(root() / "proc/sys" / name, text);
  }
  // Two entries before AT_HWCAP and the end after it, as the kernel lays them.
  void write_hwcap(uint64_t hwcap) {
    const std::array<uint64_t, 8> words = {33, 0x7FFF0000, 6, 16384, 16, hwcap, 0, 0};
    write(root() / "proc/self/auxv",
          std::string(reinterpret_cast<const char*>(words.data()), sizeof words));
  }
  std::map<std::string, std::string> environment() const {
    return {{"LOONGFORGE_SYSROOT", root().string()},
            {"LOONGFORGE_HOME", home().string()},
            {"PATH", (folder_ / "bin").string() + ":/usr/bin:/bin"},
            {"CXX", "g++"}};
  }
  Outcome run_script(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"/bin/bash", script().string()});
    return run({std::move(arguments), environment()});
  }
  // $1 is the script, then what follows.
  Outcome shell(const std::string& program, const std::string& text) const {
    return run({{program, "-c", text, "shell", script().string()}, environment()});
  }

 private:
  static void executable(const fs::path& file) {
    fs::permissions(file, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  }
  TempDir folder_;
};

const std::vector<std::string>& shells() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> list = {"/bin/bash"};
    if (fs::exists("/usr/bin/zsh")) {
      list.emplace_back("/usr/bin/zsh");
    } else {
      MESSAGE("SKIPPED: zsh is not installed, so nothing is sourced in it");
    }
    return list;
  }();
  return found;
}

TEST_CASE("setup script: a machine that is ready, LoongArch and x86-64") {
  const Outcome loong = Machine("loongarch64").run_script();
  CHECK(loong.code == 0);
  CHECK(loong.err.empty());
  CHECK(contains(loong.out, "ok    LASX        enabled"));
  CHECK(contains(loong.out, "3 of 4 free, 32 MB each"));
  CHECK(contains(loong.out, "g++ (GCC 14.2.0)"));
  CHECK(contains(loong.out, "cgroup v2; CPUs now: 0-7"));
  CHECK(contains(loong.out, "v0.4.0 (Test)"));
  const Outcome x86 = Machine("x86_64").run_script();
  CHECK(x86.code == 0);
  CHECK(x86.err.empty());
  CHECK(contains(x86.out, "AVX-512"));
  CHECK_FALSE(contains(x86.out, "AT_HWCAP"));
  const Outcome quiet = Machine("x86_64").run_script({"--quiet"});
  CHECK(quiet.out.empty());
  CHECK(quiet.code == 0);
  CHECK(Machine("riscv64").run_script().code == 1);
}

TEST_CASE(
    "setup script: LASX off is the known error with its cure, whatever the capitals of lscpu") {
  Machine machine("loongarch64");
  machine.command("lscpu", "echo LASX");
  machine.write_hwcap(0x5E);
  const Outcome off = machine.run_script();
  CHECK(off.code == 1);
  CHECK(off.err.starts_with(kBiosError));
  CHECK(contains(off.err, kBiosPath));
  CHECK(contains(off.err, "kernels run LSX"));
  machine.write_hwcap(0x4E);
  CHECK(contains(machine.run_script().err, "LSX is off as well"));
  fs::remove(machine.root() / "proc/self/auxv");
  const Outcome unknown = machine.run_script();
  CHECK(unknown.code == 0);
  CHECK(contains(unknown.err, "not known whether LSX and LASX are on"));
}

TEST_CASE("setup script: glibc versions compare as numbers") {
  struct Case {
    const char *arch, *version;
    int code;
    const char* error;
  };
  for (const Case& c : {Case{"x86_64", "2.34", 0, ""},
                        {"x86_64", "2.100", 0, ""},
                        {"x86_64", "3.0", 0, ""},
                        {"x86_64", "2.9", 1, kGlibcError},
                        {"x86_64", "2.33", 1, kGlibcError},
                        {"loongarch64", "2.28", 1, kGlibcError},
                        {"loongarch64", "2.35", 1, "Error: glibc < 2.36, please update\n"},
                        {"loongarch64", "2.36", 0, ""},
                        {"x86_64", "1.99", 1, kGlibcError}}) {
    INFO(c.arch, " ", c.version);
    Machine machine(c.arch);
    machine.command("getconf", "echo 'glibc " + std::string(c.version) + "'");
    const Outcome o = machine.run_script();
    CHECK(o.code == c.code);
    CHECK(o.err.starts_with(c.error));
    CHECK(o.err.empty() == (c.code == 0));
  }
  Machine fallback("x86_64");
  fallback.command("getconf", "exit 1");
  fallback.command("ldd", "echo 'ldd (Debian GLIBC 2.31-13) 2.31'; echo Copyright");
  CHECK(fallback.run_script().err.starts_with(kGlibcError));
  // What the suite's library asks for counts where it is more.
  Machine newer("x86_64");
  write(newer.home() / "lib/libloongforge.so", std::string("\0GLIBC_2.2.5\0GLIBC_2.40\0x", 25));
  CHECK(newer.run_script().err.starts_with("Error: glibc < 2.40, please update\n"));
}

TEST_CASE("setup script: sourced, it exports, returns, and leaves nothing else behind") {
  Machine machine("loongarch64");
  for (const std::string& shell : shells()) {
    INFO(shell);
    const std::string text =
        "PATH=$PATH: ; before=$PATH; set -u; source \"$1\" && echo ready $?; echo alive; "
        "source \"$1\" >/dev/null; echo \"$LOONGFORGE_HOME|$LD_LIBRARY_PATH|$PATH\"; "
        "[ \"$PATH\" = \"$LOONGFORGE_HOME/bin:$before\" ] && echo once; "
        "command env | grep ^LD_LIBRARY_PATH=; set | grep -E '^lf_'; "
        "typeset -f | grep '^lf_'; echo done";
    const Outcome o = machine.shell(shell, text);
    CHECK(o.code == 0);
    CHECK(o.err.empty());
    const std::string home = machine.home().string();
    CHECK(contains(o.out, "ready 0\nalive\n" + home + "|" + home + "/lib|" + home + "/bin:"));
    CHECK(contains(o.out, "\nonce\nLD_LIBRARY_PATH=" + home + "/lib\ndone\n"));
  }
}

TEST_CASE("setup script: sourced with an error, the shell goes on with the environment set") {
  Machine machine("loongarch64");
  machine.write_hwcap(0x5E);
  for (const std::string& shell : shells()) {
    INFO(shell);
    const Outcome o = machine.shell(
        shell,
        "LD_LIBRARY_PATH=/a; source \"$1\" >/dev/null && echo no; echo alive $LD_LIBRARY_PATH");
    CHECK(o.code == 0);
    CHECK(o.out == "alive " + (machine.home() / "lib").string() + ":/a\n");
    CHECK(o.err.starts_with(kBiosError));
  }
}

// An earlier suite on the way must not win, wherever this one's folder stood before.
TEST_CASE("setup script: sourced, its folders come first and stand once, and the rest stays") {
  Machine machine("x86_64");
  Machine other("x86_64");
  const std::string home = machine.home().string();
  const std::string rest = (other.home() / "bin").string() + ":/usr/bin:/bin";
  const std::string mine = home + "/bin";
  const std::string text =
      "LD_LIBRARY_PATH=$3 PATH=$2; source \"$1\" >/dev/null 2>&1; command -v loongforge; "
      "echo \"$PATH|$LD_LIBRARY_PATH\"; source \"$1\" >/dev/null 2>&1; "
      "echo \"$PATH|$LD_LIBRARY_PATH\"";
  struct Case {
    std::string path, libraries, path_after, libraries_after;
  };
  const std::string lib = home + "/lib";
  for (const Case& c :
       {Case{rest, "", rest, ""},
        {rest + ":" + mine, "/a:" + lib, rest, ":/a"},
        {mine + ":" + mine + ":" + rest + ":" + mine, lib + ":" + lib, rest, ""},
        {rest + ":" + mine + "2:" + mine, lib + "2", rest + ":" + mine + "2", ":" + lib + "2"},
        // An empty element means the folder one is in: it is the user's, kept and not made.
        {rest + "::" + mine + ":", ":/a:" + lib + "::", rest + "::", "::/a::"}}) {
    for (const std::string& shell : shells()) {
      INFO(shell, " ", c.path, " ", c.libraries);
      const Outcome o = run({{shell, "-c", text, "shell", script().string(), c.path, c.libraries},
                             machine.environment()});
      std::string after = mine;
      after += ":" + c.path_after + "|" + lib + c.libraries_after + "\n";
      CHECK(o.out == mine + "/loongforge\n" + after + after);
      CHECK(o.err.empty());
    }
  }
}

TEST_CASE("setup script: sourced, it does not take the caller's arguments for its own") {
  Machine machine("x86_64");
  machine.parameter("vm/swappiness", "60\n");
  for (const std::string& shell : shells()) {
    INFO(shell);
    const Outcome o = run({{shell, "-c", "source \"$0\" >/dev/null 2>&1; echo $? $*",
                            script().string(), "--fix", "other"},
                           machine.environment()});
    CHECK(o.out == "0 --fix other\n");
    CHECK(slurp(machine.root() / "proc/sys/vm/swappiness") == "60\n");
  }
}

TEST_CASE("setup script: LOONGFORGE_HOME is found from where the script is installed") {
  Machine machine("x86_64");
  fs::create_directories(machine.home() / "share/loongforge");
  const fs::path installed = machine.home() / "share/loongforge/setup_loongforge.sh";
  fs::copy_file(script(), installed);
  std::map<std::string, std::string> environment = machine.environment();
  environment.erase("LOONGFORGE_HOME");
  for (const std::string& shell : shells()) {
    const Outcome o = run({{shell, "-c", "source \"$1\" >/dev/null; echo $LOONGFORGE_HOME", "shell",
                            installed.string()},
                           environment});
    CHECK(o.out == fs::canonical(machine.home()).string() + "\n");
  }
}

TEST_CASE("setup script: a LOONGFORGE_HOME from the current folder holds in others") {
  const Machine machine("x86_64");
  for (const std::string& shell : shells()) {
    const Outcome o = machine.shell(
        shell,
        "cd \"$LOONGFORGE_HOME/..\"; LOONGFORGE_HOME=home//; source \"$1\" >/dev/null 2>&1; cd /; "
        "cd \"$LOONGFORGE_HOME\" && pwd -P; command -v loongforge");
    CHECK(o.out == fs::canonical(machine.home()).string() + "\n" +
                       (machine.home() / "bin/loongforge").string() + "\n");
  }
}

TEST_CASE("setup script: run, it changes no environment; wrong words end in 2; dash is told") {
  Machine machine("x86_64");
  const Outcome wrong = machine.run_script({"--fxi"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "unknown argument '--fxi'"));
  CHECK(machine.run_script({"--help"}).code == 0);
  if (fs::exists("/usr/bin/zsh"))
    CHECK(run({{"/usr/bin/zsh", script().string(), "--fxi"}, machine.environment()}).code == 2);
  if (fs::exists("/bin/dash")) {
    const Outcome dash = run({{"/bin/dash", script().string()}, machine.environment()});
    CHECK(dash.code == 2);
    CHECK(dash.err == "setup_loongforge.sh: needs bash or zsh\n");
  }
}

TEST_CASE("setup script: parameters are changed by --fix only, and written down with what was") {
  Machine machine("x86_64");
  const fs::path swappiness = machine.root() / "proc/sys/vm/swappiness";
  const fs::path somaxconn = machine.root() / "proc/sys/net/core/somaxconn";
  const fs::path record = machine.root() / "etc/sysctl.d/90-loongforge.conf";
  machine.parameter("vm/swappiness", "60\n");
  machine.parameter("net/core/somaxconn", "4096\n");
  machine.parameter("vm/vfs_cache_pressure", "1000000\n");
  const Outcome check = machine.run_script();
  CHECK(check.code == 0);
  CHECK(contains(check.err, "vm.swappiness 60; 1 is better"));
  CHECK(contains(check.err, "net.core.somaxconn 4096; 65535 is better"));
  CHECK(slurp(swappiness) == "60\n");
  CHECK_FALSE(fs::exists(record));

  const Outcome fixed = machine.run_script({"--fix"});
  CHECK(fixed.code == 0);
  CHECK(fixed.err.empty());
  CHECK(contains(fixed.out, "1 (was 60;"));
  CHECK(contains(fixed.out, "left as it is"));
  CHECK(slurp(swappiness) == "1\n");
  CHECK(slurp(somaxconn) == "65535\n");
  CHECK(slurp(machine.root() / "proc/sys/vm/vfs_cache_pressure") == "1000000\n");
  CHECK(slurp(record).ends_with(
      "# was 60\nvm.swappiness = 1\n# was 4096\nnet.core.somaxconn = 65535\n"));

  // Again, after someone set one back: what was there first stays on record, nothing stands twice.
  const std::string before = slurp(record);
  CHECK(machine.run_script({"--fix"}).code == 0);
  CHECK(slurp(record) == before);
  machine.parameter("vm/swappiness", "30\n");
  CHECK(machine.run_script({"--fix"}).code == 0);
  CHECK(slurp(record).ends_with(
      "# was 4096\nnet.core.somaxconn = 65535\n# was 60\nvm.swappiness = 1\n"));
}

TEST_CASE("setup script: --fix that cannot write says so, and without root it does nothing") {
  Machine machine("x86_64");
  machine.parameter("vm/swappiness", "60\n");
  machine.command("id", "echo 1000");
  const Outcome user = machine.run_script({"--fix"});
  CHECK(user.code == 1);
  CHECK(user.out.empty());
  CHECK(contains(user.err, "run it as root"));
  CHECK(slurp(machine.root() / "proc/sys/vm/swappiness") == "60\n");
  machine.command("id", "echo 0");
  fs::remove_all(machine.root() / "etc");
  const Outcome no_record = machine.run_script({"--fix"});
  CHECK(no_record.code == 1);
  CHECK(contains(no_record.err, "Error: vm.swappiness is set to 1 until the next start only"));
}

TEST_CASE(
    "setup script: --fix keeps what else stands in its file, and replaces every setting of a key") {
  Machine machine("x86_64");
  const fs::path record = machine.root() / "etc/sysctl.d/90-loongforge.conf";
  machine.parameter("vm/swappiness", "60\n");
  write(record,
        "# mine: kernel.x = 1\n\nvm.swappiness=10\n; a remark\n -vm/swappiness = 20\n"
        "# was tuned by hand\nkernel.x = vm.swappiness\nvm.swappiness\n# vm.swappiness = 5\n"
        "vm.swappiness_other = 3\n# last, without an end");
  CHECK(machine.run_script({"--fix"}).code == 0);
  const std::string expected =
      "# mine: kernel.x = 1\n\n; a remark\n# was tuned by hand\nkernel.x = vm.swappiness\n"
      "vm.swappiness\n# vm.swappiness = 5\nvm.swappiness_other = 3\n# last, without an end\n"
      "# was 60\nvm.swappiness = 1\n";
  const std::string written = slurp(record);
  CHECK(written.starts_with("# Written by setup_loongforge.sh --fix"));
  CHECK(written.substr(written.find('\n') + 1) == expected);
  CHECK((fs::status(record).permissions() & fs::perms::all) == fs::perms(0644));

  // The user sets it once more below: the first record stays, one setting is left, the title once.
  write(record, slurp(record) + "vm.swappiness=30\n");
  machine.parameter("vm/swappiness", "30\n");
  CHECK(machine.run_script({"--fix"}).code == 0);
  CHECK(slurp(record) == written);
  CHECK(std::distance(fs::directory_iterator(record.parent_path()), {}) == 1);
}

TEST_CASE("setup script: --fix writes its file whole or says that it did not") {
  Machine machine("x86_64");
  const fs::path folder = machine.root() / "etc/sysctl.d";
  const fs::path record = folder / "90-loongforge.conf";
  const fs::path precious = machine.root() / "precious";
  write(precious, "precious\n");
  const auto fix = [&] {
    machine.parameter("vm/swappiness", "60\n");
    return machine.run_script({"--fix"});
  };
  const auto refused = [&](const Outcome& o) {
    CHECK(o.code == 1);
    CHECK(contains(o.err, "Error: vm.swappiness is set to 1 until the next start only\n"));
    CHECK_FALSE(contains(o.out, "ok    vm.swappiness"));
    CHECK(std::distance(fs::directory_iterator(folder), {}) == 1);  // nothing half done is left
  };
  fs::create_directories(record);
  refused(fix());
  CHECK(fs::is_empty(record));
  fs::remove(record);
  fs::create_symlink("/dev/null", record);  // how an administrator switches such a file off
  refused(fix());
  CHECK(fs::is_symlink(record));
  fs::remove(record);
  write(record, "# mine\n");
  for (const char* command : {"mktemp", "awk", "mv", "chmod"}) {
    INFO(command);
    machine.command(command, "exit 1");
    refused(fix());
    CHECK(slurp(record) == "# mine\n");
    machine.command(command, "exec /usr/bin/" + std::string(command) + " \"$@\"");
  }
  // Nothing is written through a link that waits beside it.
  fs::create_symlink(precious, folder / "90-loongforge.conf.new");
  CHECK(fix().code == 0);
  CHECK(slurp(precious) == "precious\n");
  CHECK(contains(slurp(record), "# mine\n# was 60\nvm.swappiness = 1\n"));
}

TEST_CASE("setup script: --fix that the kernel does not take is an error") {
  Machine machine("x86_64");
  // It reads as 60 whatever is written: as in a container whose parameters are not its own.
  machine.command("cat", "case $1 in */swappiness) echo 60 ;; *) exec /bin/cat \"$@\" ;; esac");
  machine.parameter("vm/swappiness", "60\n");
  const Outcome o = machine.run_script({"--fix"});
  CHECK(o.code == 1);
  CHECK(o.err.starts_with("Error: vm.swappiness cannot be set to 1\n"));
  CHECK_FALSE(fs::exists(machine.root() / "etc/sysctl.d/90-loongforge.conf"));
}

TEST_CASE("setup script: lasx_kmod is loaded where it exists, LASX is off and --fix is given") {
  Machine machine("loongarch64");
  const fs::path log = machine.root() / "modprobe.log";
  machine.command("modprobe", "echo \"$*\" >>'" + log.string() + "'");
  CHECK(machine.run_script({"--fix"}).code == 0);  // LASX is on: nothing to load
  CHECK_FALSE(fs::exists(log));
  machine.write_hwcap(0x5E);
  CHECK(contains(machine.run_script().out, "--fix loads it"));
  CHECK_FALSE(contains(slurp(log), "\nlasx_kmod\n"));
  CHECK(machine.run_script({"--fix"}).code == 1);  // loaded, and LASX is still off
  CHECK(slurp(log).ends_with("\nlasx_kmod\n"));
  machine.command("modprobe", "echo \"$*\" >>'" + log.string() + "'; exit 1");
  fs::remove(log);
  machine.run_script({"--fix"});
  CHECK(slurp(log) == "--dry-run --quiet lasx_kmod\n");  // there is none
}

TEST_CASE("setup script: huge pages, /dev/shm and cpuset, each as found") {
  Machine machine("loongarch64");
  write(machine.root() / "proc/meminfo", "HugePages_Total: 0\nHugepagesize: 32768 kB\n");
  CHECK(contains(machine.run_script().out, "none reserved (32 MB each)"));
  write(machine.root() / "proc/meminfo", "MemTotal: 1 kB\n");
  CHECK(contains(machine.run_script().out, "this kernel has none"));

  machine.command("df", "printf 'head\\nshm 65536 0 65536 0%% /dev/shm\\n'");
  CHECK(contains(machine.run_script().err, "/dev/shm    64 MB; ranks of one machine want 1 GB"));
  machine.command("df", "exit 1");
  CHECK(contains(machine.run_script().err, "/dev/shm    is not there"));

  write(machine.root() / "sys/fs/cgroup/user.slice/session/cgroup.controllers", "memory\n");
  CHECK(
      contains(machine.run_script().out, "v2, not delegated to this group (/user.slice/session)"));
  fs::remove_all(machine.root() / "sys");
  CHECK(contains(machine.run_script().err, "cpuset      no cgroup offers it"));
  write(machine.root() / "proc/cgroups", "#name\th\tn\te\ncpuset\t3\t1\t1\n");
  CHECK(contains(machine.run_script().out, "cgroup v1 (hierarchy 3)"));
  write(machine.root() / "proc/cgroups", "#name\th\tn\te\ncpuset\t3\t1\t0\n");
  CHECK(contains(machine.run_script().err, "no cgroup offers it"));

  machine.parameter("kernel/osrelease", "4.19.0-loongson\n");
  const Outcome old = machine.run_script();
  CHECK(old.code == 1);
  CHECK(contains(old.err, "Error: Linux 4.19.0-loongson is older than 5.19"));
}

TEST_CASE("setup script: the compiler is CXX as the shell would run it, GCC or Clang") {
  const std::string clang =
      "case $1 in --version) echo 'Debian clang version V' ;; -dumpversion) echo V ;; "
      "-dumpfullversion) echo unknown >&2; exit 1 ;; esac";
  const auto clang_of = [&](const std::string& version) {
    std::string body = clang;
    for (size_t at = body.find('V'); at != std::string::npos; at = body.find('V'))
      body.replace(at, 1, version);
    return body;
  };
  for (const std::string arch : {"loongarch64", "x86_64"}) {
    Machine machine(arch);
    machine.command("g++-old", "case $1 in -dumpfullversion) echo 11.3.0 ;; esac");
    machine.command("g++-bare",
                    "case $1 in -dumpfullversion) echo 14.1.0 ;; -std*) exit 1 ;; esac");
    machine.command("clang++-18", clang_of("18.1.8"));
    machine.command("clang++-16", clang_of("16.0.6"));
    machine.command("clang++-15", clang_of("15.0.7"));
    machine.command("launcher", "[ \"$1\" = --own ] && shift; exec \"$@\"");
    machine.command("a b/g++", "exec g++ \"$@\"");
    const bool loong = arch == "loongarch64";
    const std::string needed = loong ? "building needs GCC 14 or Clang 18, or newer: CXX="
                                     : "building needs GCC 12 or Clang 16, or newer: CXX=";
    const std::string blank = (machine.home().parent_path() / "bin/a b/g++").string();
    const std::string clang_16 = "clang++-16 (Clang 16.0.6)";
    struct Case {
      std::string cxx, out, err;
    };
    for (const Case& c :
         {Case{"g++", "ok    compiler    g++ (GCC 14.2.0)", ""},
          {"", "ok    compiler    g++ (GCC 14.2.0)", ""},
          {"launcher g++", "ok    compiler    launcher g++ (GCC 14.2.0)", ""},
          {"launcher --own g++ -O2", "ok    compiler    launcher --own g++ -O2 (GCC 14.2.0)", ""},
          {blank, "ok    compiler    " + blank + " (GCC 14.2.0)", ""},
          {"clang++-18", "ok    compiler    clang++-18 (Clang 18.1.8)", ""},
          {"clang++-16", loong ? "" : "ok    compiler    " + clang_16,
           loong ? "warn  compiler    " + clang_16 + "; " + needed + "clang++-18" : ""},
          {"clang++-15", "", "clang++-15 (Clang 15.0.7); " + needed},
          {"g++-old", "",
           "warn  compiler    g++-old (GCC 11.3.0); " + needed + (loong ? "g++-14" : "g++-12")},
          {"g++-bare", "",
           "g++-bare (GCC 14.1.0) does not compile with " +
               std::string(loong ? "-mlasx" : "-mavx512bf16")},
          {"nosuch", "note  compiler    no nosuch; only building the suite needs one", ""},
          {"nosuch g++", "note  compiler    no nosuch; only building", ""},
          {"launcher nosuch", "note  compiler    launcher nosuch does not run; only building",
           ""}}) {
      std::map<std::string, std::string> environment = machine.environment();
      environment["CXX"] = c.cxx;
      for (const std::string& shell : shells()) {
        INFO(arch, " ", shell, " CXX=", c.cxx);
        const Outcome o = run({{shell, script().string()}, environment});
        CHECK(o.code == 0);
        CHECK(contains(o.out, c.out));
        CHECK(contains(o.err, c.err));
        CHECK(o.err.empty() == c.err.empty());
      }
    }
  }
}

// This machine, and the suite that was just built.
TEST_CASE("setup script: on this machine, sourced and run, as root and as another user") {
  const std::map<std::string, std::string> environment = {
      {"LOONGFORGE_HOME", binary_dir().string()}};
  const std::string text = "source \"$1\" >/dev/null 2>&1; loongforge version";
  const Outcome version = run({{program("loongforge"), "version"}});
  for (const std::string& shell : shells()) {
    const Outcome o = run({{shell, "-c", text, "shell", script().string()}, environment});
    CHECK(o.out == version.out);
  }
  const Outcome check = run({{"/bin/bash", script().string()}, environment});
  CHECK(contains(check.out, "ok    glibc"));
  CHECK(contains(check.out, "ok    loongforge"));
  if (geteuid() != 0 || !fs::exists("/usr/bin/setpriv")) {
    MESSAGE("SKIPPED: another user is tried as root only");
    return;
  }
  // A folder that this user may read.
  const TempDir folder;
  fs::permissions(folder.path(), fs::perms::all);
  const fs::path copy = folder / "setup_loongforge.sh";
  fs::copy_file(script(), copy);
  const auto as_nobody = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    return run({std::move(words)});
  };
  const Outcome run_by_other = as_nobody({"/bin/bash", copy.string()});
  CHECK(run_by_other.code == check.code);
  CHECK(contains(run_by_other.out, "ok    glibc"));
  CHECK_FALSE(contains(run_by_other.err, "denied"));
  const Outcome fix = as_nobody({"/bin/bash", copy.string(), "--fix"});
  CHECK(fix.code == 1);
  CHECK(contains(fix.err, "run it as root"));
  const Outcome sourced =
      as_nobody({"/bin/bash", "-c", "source \"$1\" >/dev/null 2>&1; echo $LOONGFORGE_HOME", "shell",
                 copy.string()});
  CHECK(sourced.out == "/opt/loongforge\n");
}

// The loong64 programs of the root run by the user-mode emulator; what they read of the processor
// is its.
TEST_CASE("setup script: under emulation of LoongArch, LASX on and off") {
  const char* given = std::getenv("LOONGFORGE_LOONGARCH_ENV");
  const fs::path environment =
      given != nullptr ? fs::path(given) : source_dir() / "build" / "loongarch" / "env";
  const fs::path root = environment / "tools" / "opt" / "loong64";
  if (geteuid() != 0 || !fs::exists(root) ||
      (!fs::exists("/proc/sys/fs/binfmt_misc/loongforge-loong64") &&
       !fs::exists("/proc/sys/fs/binfmt_misc/loong64"))) {
    MESSAGE(
        "SKIPPED: the LoongArch environment is not there (scripts/loongarch; "
        "LOONGFORGE_LOONGARCH_ENV)");
    return;
  }
  const TempDir work;
  // In a mount namespace of its own, so that nothing stays mounted.
  const auto emulated = [&](const char* cpu, const std::string& how) {
    return run({{"/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/bash", "-c",
                 "mount --rbind /dev \"$1/dev\" && mount --bind /sys \"$1/sys\" && "
                 "mount -t proc proc \"$1/proc\" && install -m 755 \"$2\" \"$3\" && "
                 "mount --bind \"${3%/*}\" \"$1/tmp\" && "
                 "exec chroot \"$1\" /bin/bash -c \"$4\"",
                 "shell", root.string(), script().string(), (work / "setup.sh").string(), how},
                {{"QEMU_CPU", cpu}, {"PATH", "/usr/bin:/bin:/usr/sbin:/sbin"}}});
  };
  const Outcome on = emulated("la464", "/tmp/setup.sh");
  CHECK(on.code == 0);
  CHECK(contains(on.out, "loongarch64"));
  CHECK(contains(on.out, "ok    LASX        enabled"));
  const Outcome off = emulated("la464,lasx=off", "/tmp/setup.sh");
  CHECK(off.code == 1);
  CHECK(contains(off.err, kBiosError));
  CHECK(contains(off.err, kBiosPath));
  const Outcome sourced =
      emulated("la464,lasx=off", "source /tmp/setup.sh >/dev/null; echo alive $? $LOONGFORGE_HOME");
  CHECK(sourced.out == "alive 1 /opt/loongforge\n");
}

}  // namespace
}  // namespace loongforge::test
