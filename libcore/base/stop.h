// Ending at a signal with what was half written removed: the handler sets a flag, the work looks at
// it between pieces and ends with an Error, so that everything on the way is undone as after any
// other error. For commands whose output appears whole or not at all; training saves its state at a
// signal instead (train/signals.h).
// Thread-safety: one StopGuard at a time in a process; check_stop() from any thread.
#pragma once

#include <csignal>

#include "base/api.h"

namespace loongforge {

// While it lives SIGINT, SIGTERM and SIGHUP ask to stop; a second one ends the process at once. One
// that was ignored (nohup) stays ignored.
class LF_API StopGuard {
 public:
  StopGuard();
  ~StopGuard();  // the handlers that were there before come back
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  struct sigaction old_[3];
};

// Once a signal asked to stop: Error "stopped by SIGTERM", its code 128 and the signal's number, as
// shells say. Nothing without a StopGuard.
LF_API void check_stop();

}  // namespace loongforge
