// The commands' way into training: everything `loongforge train` does, on one machine (rank 0 of
// 1). Thread-safety: one call at a time in a process (it installs signal handlers while it runs).
#pragma once

#include "base/api.h"
#include "train/options.h"

namespace loongforge::train {

// Runs what the options ask for: training, --eval_only, --dry_run or --preview. Results go to
// stdout through `print`, progress and logs to the log sink and, as one JSON object a step, to
// `step_json` when log_format is kJson. Returns the exit code: 0, 75 (saved on SIGTERM or SIGUSR1,
// asks to be requeued), 130 (saved on SIGINT). Throws Error.
struct Output {
  void (*print)(const char* text);  // stdout, as it is
  void (*step_line)(
      const char* text);  // stderr: one JSON object or one progress line, without the newline
  bool colour = false;    // stdout is a terminal and wants colour
};
LF_API int run_training(const TrainOptions& options, const Output& output);

}  // namespace loongforge::train
