#include "cmd/train/train_command.h"

#include <string>

#include "cli/output.h"
#include "cmd/commands.h"
#include "cmd/train/options.h"
#include "train/trainer.h"

namespace loongforge::cmd {

int run_train(const cli::Options& options) {
  const train::TrainOptions asked = train_options(options);
  cli::log_to_stderr(train_command.name, asked.log_format == train::LogFormat::kJson);
  const train::Output output{
      [](const char* text) { cli::print(text); },
      [](const char* line) { cli::print_error(std::string(line) + "\n"); },
  };
  return train::run_training(asked, output);
}

}  // namespace loongforge::cmd
