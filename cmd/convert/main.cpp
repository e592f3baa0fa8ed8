// loongforge-convert: a foreign model becomes LoongIR (import), or LoongIR a foreign model
// (--export).
#include "cli/run.h"
#include "cmd/commands.h"
#include "cmd/convert/convert_command.h"

int main(int argc, char** argv) {
  using namespace loongforge;
  return cli::run_command(cmd::convert_command, argc, argv, cmd::run_convert);
}
