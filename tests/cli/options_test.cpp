#include "cli/options.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace loongforge::cli {
namespace {

using support::Json;

constexpr Option kTable[] = {
    {"learning_rate|lr", OptionType::kDouble, nullptr, "(0,1]", "G", "rate"},
    {"lora-rank|r", OptionType::kInt, "8", "[1,1024]", "G", "rank"},
    {"mode", OptionType::kChoice, "lora", "lora|full", "G", "mode"},
    {"packing", OptionType::kFlag, "false", nullptr, "G", "pack"},
    {"target", OptionType::kList, "all", nullptr, "G", "targets"},
    {"resume", OptionType::kFlagOrPath, nullptr, nullptr, "G", "resume"},
    {"path", OptionType::kPath, nullptr, nullptr, "G", "path"},
};

const Option& row(const char* name) { return *find_option(kTable, name); }

std::string refusal(const char* name, std::string_view text) {
  try {
    return "accepted as " + check_value(row(name), text, "here");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.what();
  }
}

std::string json_refusal(const char* name, const Json& value) {
  try {
    return "accepted as " + check_json_value(row(name), value, "run.json: " + std::string(name));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.what();
  }
}

TEST_CASE("names: aliases and both spellings find the row, others none") {
  CHECK(find_option(kTable, "lr") == &kTable[0]);
  CHECK(find_option(kTable, "learning-rate") == &kTable[0]);
  CHECK(find_option(kTable, "lora_rank") == &kTable[1]);
  CHECK(find_option(kTable, "r") == &kTable[1]);
  CHECK(find_option(kTable, "lora") == nullptr);
  CHECK(environment_name(row("lora_rank")) == "LOONGFORGE_LORA_RANK");
}

TEST_CASE("values are checked against type and domain, and the message says what is allowed") {
  CHECK(check_value(row("lr"), "2e-4", "here") == "2e-4");
  CHECK(check_value(row("lora_rank"), "+16", "here") == "16");
  CHECK(check_value(row("packing"), "True", "here") == "true");
  CHECK(check_value(row("packing"), "0", "here") == "false");
  CHECK(refusal("lr", "0") == "here: '0' is out of range; give a value above 0 and at most 1");
  CHECK(refusal("lr", "1e999") == "here: '1e999' is not a number");
  CHECK(refusal("lr", "nan") == "here: 'nan' is not a number");
  CHECK(refusal("lr", "0,1") == "here: '0,1' is not a number");
  CHECK(refusal("lora_rank", "8.5") == "here: '8.5' is not an integer");
  CHECK(refusal("lora_rank", "99999999999999999999") ==
        "here: '99999999999999999999' is not an integer");
  CHECK(refusal("lora_rank", "0") ==
        "here: '0' is out of range; give a value at least 1 and at most 1024");
  CHECK(refusal("lora_rank", "") == "here: '' is not an integer");
  CHECK(refusal("mode", "ful") == "here: 'ful' is not one of lora, full; did you mean full?");
  CHECK(refusal("packing", "maybe") == "here: 'maybe' is not true or false");
  CHECK(refusal("path", "") == "here: the value is empty");
}

TEST_CASE("JSON values must have the row's type") {
  CHECK(check_json_value(row("lr"), Json(0.5), "") == "0.5");
  CHECK(check_json_value(row("lora_rank"), Json(4.0), "") == "4");
  CHECK(check_json_value(row("target"), Json(Json::Array{Json("a"), Json("b")}), "") == "a,b");
  CHECK(check_json_value(row("resume"), Json(true), "") == "true");
  CHECK(check_json_value(row("resume"), Json("dir"), "") == "dir");
  CHECK(json_refusal("lr", Json("2e-4")) == "run.json: lr: the value is string, not number");
  CHECK(json_refusal("lora_rank", Json(1.5)) ==
        "run.json: lora_rank: the value is number, not integer");
  CHECK(json_refusal("packing", Json("true")) ==
        "run.json: packing: the value is string, not boolean");
  CHECK(json_refusal("target", Json(Json::Array{Json(1)})) ==
        "run.json: target: the value is array, not array of strings");
  CHECK(json_refusal("mode", Json(3)) == "run.json: mode: the value is integer, not string");
  CHECK(json_refusal("lora_rank", Json(5000)) ==
        "run.json: lora_rank: '5000' is out of range; give a value at least 1 and at most 1024");
}

TEST_CASE("a value gives way to a source of higher rank only") {
  Options options(kTable);
  CHECK(options.source("lora_rank") == Source::kDefault);
  CHECK(options.place("lora_rank") == "default of --lora-rank");
  options.set("lora_rank", "3", Source::kEnvironment);
  options.set("lora_rank", "2", Source::kConfig);
  CHECK(options.integer("lora_rank") == 3);
  CHECK(options.place("lora_rank") == "LOONGFORGE_LORA_RANK");
  options.set("lora_rank", "5", Source::kFlag);
  CHECK(options.integer("r") == 5);
  CHECK(options.place("r") == "--lora-rank");
  CHECK_FALSE(options.has("path"));
  CHECK(options.text("path").empty());
  CHECK_THROWS_WITH_AS(options.require("path", "name a file"), "--path is missing; name a file",
                       Error);
  CHECK_THROWS_AS(options.text("no_such_row"), Error);
}

TEST_CASE("lists: empty words fall away") {
  Options options(kTable);
  options.set("target", "q,,v,", Source::kFlag);
  CHECK(options.list("target") == std::vector<std::string>{"q", "v"});
}

TEST_CASE("the resolved configuration is typed and holds what is set") {
  Options options(kTable);
  options.set("lr", "2e-4", Source::kFlag);
  options.set("resume", "true", Source::kFlag);
  CHECK(
      options.resolved().dump() ==
      R"({"learning_rate":0.0002,"lora_rank":8,"mode":"lora","packing":false,"target":["all"],"resume":true})");
  CHECK(options.sources().at("learning_rate") == Json("flag"));
  CHECK(options.sources().at("lora_rank") == Json("default"));
  CHECK_FALSE(options.sources().contains("path"));
}

}  // namespace
}  // namespace loongforge::cli
