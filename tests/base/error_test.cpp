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

TEST_CASE("error: the codes are the exit codes") {
  LF_CHECK_ERROR(loongforge::throw_failed("f", "x"), 1, "f: x");
  LF_CHECK_ERROR(loongforge::throw_usage("x", "y"), 2, "x; y");
  LF_CHECK_ERROR(loongforge::throw_bad_data("f:3", "x"), 65, "f:3: x");
  LF_CHECK_ERROR(loongforge::throw_no_input("f", "x", "z"), 66, "f: x; z");
}
