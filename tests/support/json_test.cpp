#include "support/json.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "support/data.h"

using loongforge::Error;
using loongforge::ErrorCode;
using loongforge::support::Json;

namespace {

// The line of the Error that parsing text ends in; empty when it succeeds.
std::string fault(std::string_view text, std::string_view where = "a.json") {
  try {
    Json::parse(text, where);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadData);
    return error.what();
  }
  return {};
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("json: values of every type") {
  const Json j = Json::parse(
      R"({"n": null, "t": true, "i": -7, "d": 1.5, "s": "a\u4e2d\n", "a": [1, [2], {}], "o": {"z": 1, "a": 2}})",
      "a.json");
  CHECK(j.at("n").is_null());
  CHECK(j.at("t").as_bool());
  CHECK(j.at("i").as_int() == -7);
  CHECK(j.at("i").is_int());
  CHECK(j.at("d").as_double() == 1.5);
  CHECK(j.at("s").as_string() == "a\xe4\xb8\xad\n");
  CHECK(j.at("a").as_array().size() == 3);
  CHECK(j.at("a").as_array()[1].as_array()[0].as_int() == 2);
  CHECK(j.at("o").as_object()[0].first == "z");  // order of appearance
  CHECK(j.find("x") == nullptr);
  CHECK(j.get_int("x", 5) == 5);
  CHECK(j.get_int("n", 5) == 5);
  CHECK(j.get_double("i", 0) == -7.0);
  CHECK(j.get_string("x", "y") == "y");
}

TEST_CASE("json: integers and doubles at their limits") {
  CHECK(Json::parse("9223372036854775807", "").as_int() == std::numeric_limits<int64_t>::max());
  CHECK(Json::parse("-9223372036854775808", "").as_int() == std::numeric_limits<int64_t>::min());
  CHECK(Json::parse("9223372036854775808", "").is_double());
  CHECK(Json::parse("18446744073709551616", "").as_double() == 0x1p64);
  CHECK(Json::parse("3.0", "").as_int() == 3);
  CHECK(Json::parse("1e3", "").as_int() == 1000);
  CHECK_THROWS_AS((void)Json::parse("3.5", "").as_int(), Error);
  CHECK_THROWS_AS((void)Json::parse("9223372036854775808", "").as_int(), Error);
  CHECK_THROWS_AS(Json(std::numeric_limits<uint64_t>::max()), Error);
  CHECK(Json(uint64_t{7}).as_int() == 7);
}

TEST_CASE("json: what must not parse") {
  CHECK(has(fault(""), "a.json: invalid JSON at column 1"));
  CHECK(has(fault("{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2}}"), "duplicate key \"x\" in b"));
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += "\"k" + std::to_string(i) + "\": 0, ";
  CHECK(fault(many + "\"k1000\": 0}").empty());
  CHECK(has(fault(many + "\"k77\": 0}"), "duplicate key \"k77\""));
  CHECK(has(fault("{\"a\": 1} x"), "a.json: invalid JSON at column 10"));
  CHECK(has(fault("{\n \"a\": 1,\n \"b\": ]\n}"), "a.json:3: invalid JSON at column 7"));
  CHECK(has(fault("[1, // no\n2]"), "a.json:1: invalid JSON"));
  CHECK(has(fault("{\"a\": tru}", "d.jsonl:12"), "d.jsonl:12: invalid JSON at column 10"));
  CHECK(!fault("NaN").empty());
  CHECK(!fault("[Infinity]").empty());
  CHECK(!fault("1e999").empty());
  CHECK(!fault("\"\xff\"").empty());
  CHECK(!fault("\"\xed\xa0\x80\"").empty());  // a surrogate in UTF-8
  CHECK(!fault("\"\\ud800\"").empty());
  CHECK(!fault("\"\x01\"").empty());
  CHECK(!fault("[1,]").empty());
  CHECK(!fault("{\"a\" 1}").empty());
  CHECK(!fault("{'a': 1}").empty());
  CHECK(!fault("[1").empty());
  CHECK(!fault("01").empty());
  CHECK(has(fault(std::string_view("{}\0[", 4)), "a zero byte at offset 2"));
}

TEST_CASE("json: depth is bounded") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(fault(nested(128)).empty());
  CHECK(has(fault(nested(129)), "nested deeper than 128"));
  CHECK(has(fault(std::string(1000000, '[')), "nested deeper than 128"));
}

TEST_CASE("json: faults never carry raw bytes or endless text") {
  const std::string line = fault("{\"a\": \"" + std::string(100000, 'x') + "\xff\"}");
  CHECK(line.size() < 400);
  for (char c : line) CHECK((c >= 0x20 && c < 0x7f));
}

TEST_CASE("json: dump") {
  Json j = Json::object();
  j.set("b", 1);
  j.set("a", Json::Array{Json(1.0), Json(nullptr), Json("x\"\\\n\x01\xe4\xb8\xad")});
  j.set("e", Json::object());
  j.set("f", Json::array());
  CHECK(j.dump() ==
        "{\"b\":1,\"a\":[1.0,null,\"x\\\"\\\\\\n\\u0001\xe4\xb8\xad\"],\"e\":{},\"f\":[]}");
  CHECK(j.dump(2, true) ==
        "{\n  \"a\": [\n    1.0,\n    null,\n    \"x\\\"\\\\\\n\\u0001\xe4\xb8\xad\"\n  ],\n  "
        "\"b\": 1,\n  \"e\": {},\n  \"f\": []\n}");
  CHECK_THROWS_AS((void)Json("\xff").dump(), Error);
  CHECK_THROWS_AS((void)Json(std::nan("")).dump(), Error);
  CHECK_THROWS_AS((void)Json(std::numeric_limits<double>::infinity()).dump(), Error);
}

TEST_CASE("json: doubles are written as Python writes them, and read back equal") {
  // The right column is what repr() gives.
  const std::pair<double, const char*> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1e-5, "1e-05"},
      {500000.0, "500000.0"},
      {0.1, "0.1"},
      {1e16, "1e+16"},
      {1e15, "1000000000000000.0"},
      {1e-4, "0.0001"},
      {1.5e300, "1.5e+300"},
      {5e-324, "5e-324"},
      {9.999999747378752e-06, "9.999999747378752e-06"},
      {1.7976931348623157e308, "1.7976931348623157e+308"}};
  for (const auto& [value, text] : cases) {
    CHECK(Json(value).dump() == text);
    CHECK(Json::parse(text, "").as_double() == value);
    CHECK(Json::parse(text, "").is_double());
  }
}

TEST_CASE("json: editing") {
  Json j;
  j.set("a", 1);
  j.set("a", 2);
  j.set("b", "x");
  CHECK(j.as_object().size() == 2);
  CHECK(j.at("a").as_int() == 2);
  j.erase("a");
  CHECK_FALSE(j.contains("a"));
  Json list;
  list.push_back(1);
  CHECK(list == Json::parse("[1]", ""));
  CHECK_FALSE(list == Json::parse("[1.0]", ""));
  *j.find("b") = Json(true);
  CHECK(j.dump() == "{\"b\":true}");
}

TEST_CASE("json: errors name the value, its type and what was wanted") {
  const Json j = Json::parse(R"({"a": "x"})", "");
  try {
    (void)j.at("a").as_int("hidden_size");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message() == "hidden_size is string, not integer");
  }
  try {
    (void)j.at("b", "config");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message() == "config lacks key \"b\"");
  }
  CHECK_THROWS_AS((void)j.get_int("a", 0), Error);
  CHECK_THROWS_AS((void)Json(1).as_array(), Error);
}

TEST_CASE("json: a file that does not exist") {
  try {
    loongforge::support::read_json("/nonexistent/config.json");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kNoInput);
    CHECK(has(error.what(), "/nonexistent/config.json"));
  }
}

TEST_CASE("json: a large tokenizer.json survives a round trip, quickly") {
  const std::filesystem::path path =
      loongforge::test::shared_dir() / "data/tokenizers/qwen3/tokenizer.json";
  if (loongforge::test::shared_dir().empty() || !std::filesystem::exists(path)) {
    MESSAGE("SKIPPED: no shared test data (LOONGFORGE_TEST_DATA)");
    return;
  }
  const std::string text = loongforge::read_text(path);
  const auto start = std::chrono::steady_clock::now();
  const Json j = Json::parse(text, path.string());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE((text.size() / 1e6) << " MB parsed in " << seconds << " s");
  CHECK(j.at("model").at("vocab").as_object().size() == 151643);
  CHECK(Json::parse(j.dump(), "copy") == j);
}
