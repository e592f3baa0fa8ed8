// loongforge-train: fine-tunes, evaluates or tries a LoongIR model.
#include "cli/run.h"
#include "cmd/commands.h"
#include "cmd/train/train_command.h"

int main(int argc, char** argv) {
  using namespace loongforge;
  return cli::run_command(cmd::train_command, argc, argv, cmd::run_train);
}
