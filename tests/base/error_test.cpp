#include "base/error.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"

using loongforge::Error;
using loongforge::ErrorCode;

TEST_CASE("error: one line of where, what and hint") {
  CHECK(std::string(Error(ErrorCode::kFailed, "a.txt", "is bad", "fix it").what()) ==
        "a.txt: is bad; fix it");
  CHECK(std::string(Error(ErrorCode::kFailed, "", "is bad", "fix it").what()) == "is bad; fix it");
  CHECK(std::string(Error(ErrorCode::kFailed, "a.txt", "is bad").what()) == "a.txt: is bad");
  Error error(ErrorCode::kBadData, "w", "m", "h");
  CHECK(error.where() == "w");
  CHECK(error.message() == "m");
  CHECK(error.hint() == "h");
}

TEST_CASE("error: parts that quote a file stay on one line, and that line stays short") {
  const Error error(ErrorCode::kBadData, "a\nb", "x\033[2J\x7f\ty", "\r");
  CHECK(std::string(error.what()) == "a\\x0ab: x\\x1b[2J\\x7f\\x09y; \\x0d");
  CHECK(error.where() == "a\nb");  // the parts are as they were given
  std::string many;
  for (int i = 0; i < 400'000; ++i) many += "\xE4\xBD\xA0";  // three bytes a character
  const std::string line = Error(ErrorCode::kBadData, many, "m").what();
  CHECK(line.size() < 1020);
  CHECK(line.ends_with("\xE4\xBD\xA0...: m"));
}

TEST_CASE("error: the codes are the exit codes") {
  LF_CHECK_ERROR(loongforge::throw_failed("f", "x"), 1, "f: x");
  LF_CHECK_ERROR(loongforge::throw_usage("x", "y"), 2, "x; y");
  LF_CHECK_ERROR(loongforge::throw_bad_data("f:3", "x"), 65, "f:3: x");
  LF_CHECK_ERROR(loongforge::throw_no_input("f", "x", "z"), 66, "f: x; z");
}
