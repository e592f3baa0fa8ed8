#include "cli/options_parse.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"

namespace loongforge::cli {
namespace {

constexpr Option kRows[] = {
    {"learning_rate|lr", OptionType::kDouble, "2e-4", "(0,inf)", "G", "rate"},
    {"lora_rank|r", OptionType::kInt, "8", "[1,1024]", "G", "rank"},
    {"max_steps", OptionType::kInt, "-1", "[-1,inf)", "G", "steps"},
    {"packing", OptionType::kFlag, "false", nullptr, "G", "pack"},
    {"quick|q", OptionType::kFlag, "true", nullptr, "G", "quick"},
    {"resume_from_checkpoint", OptionType::kFlagOrPath, "false", nullptr, "G", "resume"},
    {"verify", OptionType::kFlagOrChoice, "false", "lsx|lasx", "G", "verify"},
    {"isa", OptionType::kFlag, "false", nullptr, "G", "isa"},
    {"dataset", OptionType::kString, nullptr, nullptr, "G", "data"},
};
constexpr Command kCommand{"demo", "does nothing", "[options]", kRows};

const std::vector<Option>& table() {
  static const std::vector<Option> rows = full_table(kCommand);
  return rows;
}

std::map<std::string, std::string>& fake_environment() {
  static std::map<std::string, std::string> variables;
  return variables;
}

const char* look_up(const char* name) {
  const auto found = fake_environment().find(name);
  return found == fake_environment().end() ? nullptr : found->second.c_str();
}

Parsed parse(std::vector<const char*> words, int max_positionals = 0) {
  return parse_options(table(), words, look_up, max_positionals);
}

std::string refusal(std::vector<const char*> words, ErrorCode code = ErrorCode::kUsage) {
  try {
    parse(std::move(words));
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

// A configuration file that goes away with the test.
struct Config {
  std::string path;
  explicit Config(const char* text) {
    char name[] = "/tmp/lf_config_XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    path = name;
    std::ofstream(path) << text;
    close(fd);
  }
  ~Config() { std::filesystem::remove(path); }
};

TEST_CASE(
    "command line: spellings, aliases, = and separate values, negative values, last one counts") {
  for (const char* spelling : {"--learning_rate", "--learning-rate", "--lr"}) {
    CHECK(parse({spelling, "0.5"}).options.number("lr") == 0.5);
    CHECK(parse({(std::string(spelling) + "=0.25").c_str()}).options.number("lr") == 0.25);
  }
  CHECK(parse({"-r", "4"}).options.integer("lora_rank") == 4);
  CHECK(parse({"-r4"}).options.integer("lora_rank") == 4);
  CHECK(parse({"--max_steps", "-1"}).options.integer("max_steps") == -1);
  CHECK(parse({"--lora_rank", "4", "--lora-rank=9"}).options.integer("lora_rank") == 9);
  CHECK(parse({"--dataset", "--odd name=1"}).options.text("dataset") == "--odd name=1");
  CHECK(parse({"--dataset", "a,b [c]"}).options.text("dataset") == "a,b [c]");
  CHECK(parse({}).options.source("lora_rank") == Source::kDefault);
}

TEST_CASE("flags: bare, with = or a separate true or false, negated") {
  CHECK(parse({"--packing"}).options.flag("packing"));
  CHECK(parse({"--packing", "true", "--dataset", "d"}).options.flag("packing"));
  CHECK_FALSE(parse({"--packing", "--packing", "False"}).options.flag("packing"));
  CHECK_FALSE(parse({"--packing=false"}).options.flag("packing"));
  CHECK_FALSE(parse({"--no-quick"}).options.flag("quick"));
  CHECK_FALSE(parse({"--no_quick"}).options.flag("quick"));
  CHECK(parse({"-q"}).options.source("quick") == Source::kFlag);
  CHECK(parse({"--resume_from_checkpoint"}).options.text("resume_from_checkpoint") == "true");
  CHECK(parse({"--resume_from_checkpoint", "out/step-4"}).options.text("resume_from_checkpoint") ==
        "out/step-4");
  CHECK(parse({"--resume_from_checkpoint", "--packing"}).options.text("resume_from_checkpoint") ==
        "true");
}

TEST_CASE("a flag with choices: bare, negated by false, one of its words, no other") {
  CHECK(parse({}).options.text("verify") == "false");
  CHECK(parse({"--verify"}).options.text("verify") == "true");
  CHECK(parse({"--verify", "--packing"}).options.text("verify") == "true");
  CHECK(parse({"--verify", "lasx"}).options.text("verify") == "lasx");
  CHECK(parse({"--verify=false"}).options.text("verify") == "false");
  CHECK(refusal({"--verify", "las"}) ==
        "--verify: 'las' is not one of lsx, lasx; did you mean lasx?");
}

TEST_CASE("a variable of the whole suite is no option's value") {
  fake_environment() = {{"LOONGFORGE_ISA", "avx2"}, {"LOONGFORGE_VERIFY", "lsx"}};
  CHECK(parse({}).options.source("isa") == Source::kDefault);
  CHECK(parse({}).options.text("verify") == "lsx");
  fake_environment().clear();
}

TEST_CASE("what is not understood is named, with what was meant") {
  CHECK(refusal({"--learning_rat", "1"}) ==
        "unknown option --learning_rat; did you mean --learning_rate?");
  CHECK(refusal({"--zzzzzz"}) == "unknown option --zzzzzz; -h lists the options");
  CHECK(refusal({"--no-lora_rank"}).starts_with("unknown option --no-lora_rank"));
  CHECK(refusal({"-x"}) == "unknown option -x; -h lists the options");
  CHECK(refusal({"-lr", "1"}) == "unknown option -lr; did you mean --lr?");
  CHECK(refusal({"stray"}) == "unexpected word 'stray'; options start with --; -h lists them");
  CHECK(refusal({"--packing", "maybe"}) ==
        "unexpected word 'maybe'; options start with --; -h lists them");
  CHECK(refusal({"--", "--lora_rank"}) ==
        "unexpected word '--lora_rank'; options start with --; -h lists them");
  CHECK(refusal({"--lora_rank"}) == "--lora_rank needs a value; for example --lora_rank N");
  CHECK(refusal({"--lora_rank", "x"}) == "--lora_rank: 'x' is not an integer");
  CHECK(refusal({"--dataset="}) == "--dataset: the value is empty");
  CHECK(refusal({"-qr"}) == "-qr is not understood; -h lists the options");
}

TEST_CASE("positionals are taken by commands that have them, and -- ends the options") {
  CHECK(parse({"a", "--packing", "b"}, 2).options.positionals ==
        std::vector<std::string>{"a", "b"});
  CHECK(parse({"--", "--packing"}, 1).options.positionals == std::vector<std::string>{"--packing"});
  CHECK_THROWS_AS(parse({"a", "b", "c"}, 2), Error);
}

TEST_CASE("help and version end the parsing before anything is checked") {
  CHECK(parse({"--lora_rank", "4", "-h"}).request == Request::kShortHelp);
  CHECK(parse({"--help"}).request == Request::kManual);
  CHECK(parse({"--version", "stray"}).request == Request::kVersion);
  CHECK(parse({"--dataset", "-h"}).request == Request::kRun);  // here it is a value
}

TEST_CASE("precedence: flag, environment, configuration, default") {
  const Config config(
      R"({"learning-rate": 0.3, "lora_rank": 3, "packing": true, "max_steps": null})");
  fake_environment() = {{"LOONGFORGE_LEARNING_RATE", "0.2"}, {"LOONGFORGE_MAX_STEPS", ""}};
  Options options = parse({"--config", config.path.c_str()}).options;
  CHECK(options.number("lr") == 0.2);
  CHECK(options.source("lr") == Source::kEnvironment);
  CHECK(options.integer("lora_rank") == 3);
  CHECK(options.place("lora_rank") == "lora_rank in " + config.path);
  CHECK(options.flag("packing"));
  CHECK(options.source("max_steps") == Source::kDefault);
  CHECK(parse({"--config", config.path.c_str(), "--lr", "0.1"}).options.number("lr") == 0.1);
  fake_environment() = {{"LOONGFORGE_CONFIG", config.path}};
  CHECK(parse({}).options.integer("lora_rank") == 3);
  fake_environment() = {{"LOONGFORGE_LORA_RANK", "many"}};
  CHECK(refusal({}) == "LOONGFORGE_LORA_RANK: 'many' is not an integer");
  fake_environment().clear();
}

TEST_CASE("configuration: unknown keys, wrong types, repeats and broken files name file and key") {
  const auto answer = [](const char* text) {
    const Config config(text);
    std::string line = refusal({"--config", config.path.c_str()});
    if (line.starts_with(config.path)) line.replace(0, config.path.size(), "F");
    return line;
  };
  CHECK(answer(R"({"learning_rat": 1})") ==
        "F: unknown key 'learning_rat'; did you mean learning_rate?");
  CHECK(answer(R"({"lora_rank": "8"})") == "F: lora_rank: the value is string, not integer");
  CHECK(answer(R"({"lora_rank": 8, "r": 8})").find("unknown key 'r'") != std::string::npos);
  CHECK(answer(R"({"lora_rank": 8, "lora-rank": 8})") ==
        "F: 'lora-rank' and 'lora_rank' are the same option");
  CHECK(answer(R"({"config": "x"})") ==
        "F: unknown key 'config'; it is an option of the command line only");
  CHECK(answer(R"([1])") == "F: the configuration is array, not object");
  CHECK(answer("{").starts_with("F"));
  CHECK(answer("").starts_with("F"));
  CHECK(refusal({"--config", "/nonexistent/x.json"}, ErrorCode::kNoInput)
            .starts_with("/nonexistent/x.json"));
}

TEST_CASE(
    "given is what was asked for: a flag, a variable, a configuration's other value than the "
    "default") {
  const Config config(R"({"lora_rank": 8, "learning_rate": 0.3})");
  fake_environment() = {{"LOONGFORGE_SEED", "42"}, {"LOONGFORGE_LORA_RANK", ""}};
  const Options options = parse({"--config", config.path.c_str()}).options;
  fake_environment().clear();
  CHECK(options.given("learning_rate"));
  CHECK_FALSE(options.given("lora_rank"));  // 8 is the default, as a resolved configuration has it
  const Option rows[] = {{"seed", OptionType::kInt, "42", nullptr, "G", "h"},
                         {"config", OptionType::kPath, nullptr, nullptr, "G", "h"}};
  fake_environment() = {{"LOONGFORGE_SEED", "42"}};
  CHECK(parse_options(rows, std::vector<const char*>{}, look_up).options.given("seed"));
  fake_environment().clear();
}

TEST_CASE("spaces around the words of a list do not count") {
  const Option rows[] = {{"target", OptionType::kList, nullptr, nullptr, "G", "h"},
                         {"config", OptionType::kPath, nullptr, nullptr, "G", "h"}};
  const std::vector<const char*> words = {"--target", " q_proj,  v_proj "};
  const Options options = parse_options(rows, words, look_up).options;
  CHECK(options.text("target") == "q_proj,v_proj");
  CHECK(options.list("target") == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(check_json_value(rows[0], support::Json::parse(R"([" a", "b "])", "t"), "w") == "a,b");
  CHECK_THROWS_AS(check_value(rows[0], "  ", "--target"), Error);
}

TEST_CASE(
    "a name that other programs have for an option gets its hint, on the command line and in a "
    "configuration") {
  const Option rows[] = {{"model_path", OptionType::kPath, nullptr, nullptr, "G", "h"},
                         {"config", OptionType::kPath, nullptr, nullptr, "G", "h"}};
  const ForeignName foreign[] = {{"model_name_or_path", "here: --model_path"}};
  const auto said = [&](std::vector<const char*> words) {
    try {
      parse_options(rows, words, look_up, 0, foreign);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const char* word : {"--model_name_or_path", "--model-name-or-path=x"})
    CHECK(said({word, "x"}).ends_with("; here: --model_path"));
  CHECK(said({"--model_pth", "x"}).ends_with("did you mean --model_path?"));
  const Config config(R"({"model_name_or_path": "x"})");
  CHECK(said({"--config", config.path.c_str()}).ends_with("; here: --model_path"));
}

TEST_CASE("a resolved configuration reads back to the same values") {
  const Options first =
      parse({"--lr", "3e-7", "--packing", "--no-quick", "--dataset", "d"}).options;
  const Config config(first.resolved().dump(2).c_str());
  const Options second = parse({"--config", config.path.c_str()}).options;
  CHECK(second.resolved() == first.resolved());
  CHECK(second.source("lr") == Source::kConfig);
}

TEST_CASE("a variable that sets nothing and looks like one is told") {
  constexpr Option kRows[] = {{"max_steps", OptionType::kInt, nullptr, "[1,inf)", "G", "h"},
                              {"seed", OptionType::kInt, nullptr, "[1,inf)", "G", "h"}};
  const char* const variables[] = {"HOME=/",
                                   "LOONGFORGE_MAX_STEPZ=3",
                                   "LOONGFORGE_MAX_STEPS=3",
                                   "LOONGFORGE_ISA=avx2",
                                   "LOONGFORGE_OTHER_THING=1",
                                   "LOONGFORGE_SED=1",
                                   nullptr};
  CHECK(misspelt_variables(kRows, variables) ==
        std::vector<std::string>{
            "LOONGFORGE_MAX_STEPZ sets nothing; did you mean LOONGFORGE_MAX_STEPS?"});
}

}  // namespace
}  // namespace loongforge::cli
