#include "base/env.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <array>

#include "support/expect_error.h"

using namespace loongforge;

namespace {

constexpr const char* kName = "LOONGFORGE_TEST_VARIABLE";

struct Variable {
  explicit Variable(const char* value) { setenv(kName, value, 1); }
  ~Variable() { unsetenv(kName); }
};

}  // namespace

TEST_CASE("env: unset and empty are nothing") {
  unsetenv(kName);
  CHECK(!env_text(kName));
  CHECK(!env_int(kName, 0, 9));
  Variable empty("");
  CHECK(!env_text(kName));
  CHECK(!env_flag(kName));
  CHECK(!env_int(kName, 0, 9));
  CHECK(!env_double(kName, 0, 9));
}

TEST_CASE("env: values") {
  for (const char* yes : {"1", "true", "Yes", "ON"}) {
    Variable set(yes);
    CHECK(env_flag(kName) == true);
  }
  for (const char* no : {"0", "FALSE", "no", "off"}) {
    Variable set(no);
    CHECK(env_flag(kName) == false);
  }
  {
    Variable set("-12");
    CHECK(env_int(kName, -12, 0) == -12);
    CHECK(env_double(kName, -12, 0) == -12.0);
    CHECK(env_text(kName) == "-12");
  }
  Variable set("avx2");
  std::array<std::string_view, 2> names{"scalar", "avx2"};
  CHECK(env_choice(kName, names) == size_t{1});
}

TEST_CASE("env: nonsense is a usage error that names variable, value and what is allowed") {
  for (const char* bad : {"12x", "x", "1.5", "10", "-1", "99999999999999999999", " 1"}) {
    Variable set(bad);
    LF_CHECK_ERROR(env_int(kName, 0, 9), ErrorCode::kUsage, "a whole number from 0 to 9");
    LF_CHECK_ERROR(env_int(kName, 0, 9), ErrorCode::kUsage, kName);
    LF_CHECK_ERROR(env_int(kName, 0, 9), ErrorCode::kUsage, std::string("\"") + bad + "\"");
  }
  for (const char* bad : {"nan", "inf", "0.5.5", "2.1", "one"}) {
    Variable set(bad);
    LF_CHECK_ERROR(env_double(kName, 0, 2), ErrorCode::kUsage, "from 0 to 2");
  }
  Variable set("maybe");
  LF_CHECK_ERROR(env_flag(kName), ErrorCode::kUsage, "1 or 0");
  std::array<std::string_view, 3> names{"scalar", "avx2", "avx512"};
  LF_CHECK_ERROR(env_choice(kName, names), ErrorCode::kUsage, "scalar, avx2 or avx512");
}
