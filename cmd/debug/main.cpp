// loongforge-debug: shows what the machine has and checks it.
#include "cli/run.h"
#include "cmd/commands.h"
#include "cmd/debug/debug_command.h"

int main(int argc, char** argv) {
  using namespace loongforge;
  return cli::run_command(cmd::debug_command, argc, argv, cmd::run_debug);
}
