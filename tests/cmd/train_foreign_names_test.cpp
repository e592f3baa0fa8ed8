#include <doctest/doctest.h>

#include <set>
#include <string>

#include "cli/options_parse.h"
#include "cmd/commands.h"
#include "cmd/train/foreign_names.h"
#include "support/program.h"

namespace loongforge::cmd {
namespace {

TEST_CASE("hints are for names that are no option, and name options that there are") {
  const std::vector<cli::Option> table = cli::full_table(train_command);
  const std::set<std::string> of_convert = {"quantize", "input-path", "output-path", "export"};
  std::set<std::string> names;
  for (const cli::ForeignName& each : train_command.foreign) {
    CAPTURE(each.name);
    CHECK(names.insert(each.name).second);
    CHECK(cli::option_key(each.name) == each.name);
    CHECK(cli::find_option(table, each.name) == nullptr);
    const std::string hint = each.hint;
    for (size_t at = hint.find("--"); at != std::string::npos; at = hint.find("--", at + 2)) {
      std::string option = hint.substr(
          at + 2,
          hint.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-", at + 2) - at - 2);
      CAPTURE(option);
      CHECK((option == "no-cache" || of_convert.contains(option) ||
             cli::find_option(table, option) != nullptr));
    }
  }
  for (const char* known : {"model_name_or_path", "bf16", "stage", "lora_target_modules"})
    CHECK(names.contains(known));
}

TEST_CASE("what users of other programs type ends in what to type here") {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.begin(), test::program("loongforge-train"));
    const test::Outcome o = test::run({words});
    CHECK(o.code == 2);
    return o.err;
  };
  CHECK(said({"--model_name_or_path", "m"}) ==
        "loongforge train: unknown option --model_name_or_path; here: --model_path, a folder made "
        "by loongforge convert\n");
  CHECK(said({"--bf16"}) ==
        "loongforge train: unknown option --bf16; here: --fp8_precision bf16\n");
  CHECK(said({"--stage", "sft"}) ==
        "loongforge train: unknown option --stage; leave it out: training is supervised "
        "fine-tuning (sft)\n");
}

}  // namespace
}  // namespace loongforge::cmd
