// loongforge-model-inspect: looks into what the suite computes with.
#include "cli/run.h"
#include "cmd/commands.h"
#include "cmd/inspect/inspect_command.h"

int main(int argc, char** argv) {
  using namespace loongforge;
  return cli::run_command(cmd::inspect_command, argc, argv, cmd::run_inspect);
}
