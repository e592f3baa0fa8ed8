// Runs machine code that was made at run time. Memory for it is written, then made executable,
// never both at once. A faulting operation is reported, not died of: the object holds the process's
// handlers of SIGILL, SIGSEGV, SIGBUS, SIGFPE and SIGTRAP while it lives. Floating-point
// environment while it runs: default (nearest even, nothing traps, subnormals kept). Thread-safety:
// one Runner at a time in a process, used by one thread; faults of other threads while it lives go
// where they went before.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/api.h"
#include "isa_verify/frame.h"

namespace loongforge::isa_verify {

enum class Ending : uint8_t { kDone, kIllegal, kFault };

class LF_API Runner {
 public:
  Runner();
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Takes the place of what was loaded before. Throws Error(kFailed) where the system refuses
  // memory that can be executed.
  void load(const std::vector<std::vector<uint8_t>>& functions);
  // REQUIRES which is below the number of functions, and that they are for this machine.
  Ending run(size_t which, Frame* frame);

 private:
  static constexpr int kSignals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<size_t> starts_;
  struct sigaction old_[std::size(kSignals)];
};

}  // namespace loongforge::isa_verify
