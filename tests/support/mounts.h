// File systems of a test's own: small ones that fill up, read-only ones. They are mounted in a
// mount namespace that only this process and its children see.
#pragma once

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace loongforge::test {

// False, and said loudly: this user may not mount.
inline bool private_mounts() {
  static const bool allowed = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (!allowed) MESSAGE("SKIPPED: no file system can be mounted here: " << std::strerror(errno));
  return allowed;
}

class Mounted {
 public:
  // options: of tmpfs ("size=96m").
  static Mounted small_disk(const std::filesystem::path& at, const char* options) {
    std::filesystem::create_directories(at);
    REQUIRE(::mount("tmpfs", at.c_str(), "tmpfs", 0, options) == 0);
    return Mounted(at);
  }
  static Mounted read_only(const std::filesystem::path& at) {
    REQUIRE(::mount(at.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) == 0);
    REQUIRE(::mount(nullptr, at.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0);
    return Mounted(at);
  }
  ~Mounted() { ::umount2(at_.c_str(), MNT_DETACH); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

 private:
  explicit Mounted(std::filesystem::path at) : at_(std::move(at)) {}
  std::filesystem::path at_;
};

}  // namespace loongforge::test
