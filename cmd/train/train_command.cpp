#include "cmd/train/train_command.h"

#include "base/log.h"
#include "cli/isa_report.h"
#include "cli/output.h"
#include "cmd/train/options.h"
#include "kernels/isa.h"
#include "support/log_spdlog.h"
#include "train/trainer.h"

namespace loongforge::cmd {

int run_train(const cli::Options& options) {
  const train::TrainOptions asked = train_options(options);
  const std::string advice = cli::lasx_advice(kernels::cpu().lasx_state);
  if (!advice.empty()) log_warning(advice);
  const train::Output output{
      [](const char* text) { cli::print(text); },
      [](const char* line) { support::write_log_line(line); },
  };
  return train::run_training(asked, output);
}

}  // namespace loongforge::cmd
