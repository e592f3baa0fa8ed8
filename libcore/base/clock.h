// Monotonic time for measuring. Never part of anything that is compared or stored with a model.
// Thread-safety: pure functions; a Stopwatch is a value.
#pragma once

#include <chrono>
#include <cstdint>

namespace loongforge {

inline int64_t monotonic_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Runs from its construction or the last restart().
class Stopwatch {
 public:
  double seconds() const noexcept { return static_cast<double>(monotonic_ns() - start_) * 1e-9; }
  double restart() noexcept {  // seconds until now
    int64_t now = monotonic_ns();
    double elapsed = static_cast<double>(now - start_) * 1e-9;
    start_ = now;
    return elapsed;
  }

 private:
  int64_t start_ = monotonic_ns();
};

}  // namespace loongforge
