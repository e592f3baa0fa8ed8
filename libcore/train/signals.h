// Signals of a training run: the handler only sets a flag, the loop looks after each step.
// SIGTERM, SIGUSR1, and SIGHUP unless it was ignored (nohup): finish the step, save, exit 75.
// SIGINT: save, exit 130; a second one ends the process at once. Thread-safety: one SignalGuard at
// a time in a process.
#pragma once

#include <csignal>

namespace loongforge::train {

enum class StopRequest { kNone, kSaveAndRequeue, kSaveAndStop };

class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();  // the handlers that were there before come back
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  static StopRequest requested() noexcept;

 private:
  struct sigaction term_, usr1_, int_, hup_;
};

}  // namespace loongforge::train
