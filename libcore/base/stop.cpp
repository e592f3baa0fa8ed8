#include "base/stop.h"

#include <unistd.h>

#include <atomic>
#include <iterator>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace loongforge {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> asked{0};  // the signal
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_stop(int signal) {
  if (asked.exchange(signal) != 0) _exit(128 + signal);
}

const char* name_of(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace

StopGuard::StopGuard() {
  static_assert(std::size(kSignals) == std::extent_v<decltype(old_)>);
  asked = 0;
  struct sigaction action {};
  action.sa_handler = on_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &old_[i]);
    if (old_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopGuard::~StopGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  asked = 0;
}

void check_stop() {
  const int signal = asked.load(std::memory_order_relaxed);
  if (signal != 0)
    throw Error(static_cast<ErrorCode>(128 + signal), {},
                std::string("stopped by ") + name_of(signal), "nothing was written");
}

}  // namespace loongforge
