// Watches that count the steps of a save, make one of them fail, or stop the process there so that
// it can be killed.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_ops.h"

namespace loongforge::test {

inline const char* step_name(FileStep step) {
  constexpr const char* kNames[] = {"create",      "write", "sync",   "close",
                                    "make folder", "link",  "rename", "remove"};
  return kNames[static_cast<int>(step)];
}

class Watching {
 public:
  explicit Watching(FileWatch& watch) : before_(watch_files(&watch)) {}
  ~Watching() { watch_files(before_); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  FileWatch* before_;
};

class CountSteps : public FileWatch {
 public:
  int before(FileStep step, const std::filesystem::path& path, size_t&) noexcept override {
    steps.push_back(std::string(step_name(step)) + " " + path.filename().string());
    return 0;
  }
  std::vector<std::string> steps;
};

// The steps that fn makes, in order.
template <class Fn>
std::vector<std::string> steps_of(Fn&& fn) {
  CountSteps watch;
  const Watching watching(watch);
  fn();
  return watch.steps;
}

enum class Fault { kOnce, kFromThere, kShortWrite };

// Fails step number `at` (from 0) with an errno; kFromThere: and each one that changes something
// after it, but removals (a full disk); kShortWrite: a write writes half, what follows it fails.
class FailAt : public FileWatch {
 public:
  FailAt(size_t at, int error, Fault fault) : at_(at), error_(error), fault_(fault) {}
  int before(FileStep step, const std::filesystem::path&, size_t& bytes) noexcept override {
    const size_t now = count_++;
    if (fault_ == Fault::kShortWrite && now == at_ && step == FileStep::kWrite && bytes > 1) {
      bytes /= 2;
      return 0;
    }
    if (now < at_ || (now > at_ && fault_ == Fault::kOnce)) return 0;
    if (now > at_ && step == FileStep::kRemove) return 0;
    ++failed;
    return error_;
  }
  size_t failed = 0;

 private:
  size_t at_, count_ = 0;
  int error_;
  Fault fault_;
};

class StopAt : public FileWatch {
 public:
  explicit StopAt(size_t at) : at_(at) {}
  int before(FileStep, const std::filesystem::path&, size_t&) noexcept override {
    if (count_++ == at_) ::raise(SIGSTOP);
    return 0;
  }

 private:
  size_t at_, count_ = 0;
};

// Runs fn in a child that stops at step `at`, and kills it there with SIGKILL. REQUIRES that fn
// comes to that step.
template <class Fn>
void kill_at(size_t at, Fn&& fn) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    StopAt watch(at);
    watch_files(&watch);
    try {
      fn();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE_MESSAGE(WIFSTOPPED(status), "the child never came to step " << at);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace loongforge::test
