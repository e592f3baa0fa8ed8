#include "support/counted.h"

#include <doctest/doctest.h>

using loongforge::support::counted;

TEST_CASE("one is said in the singular") {
  CHECK(counted(0, "step") == "0 steps");
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(2, "step") == "2 steps");
  CHECK(counted(1, "micro-batch") == "1 micro-batch");
  CHECK(counted(3, "micro-batch") == "3 micro-batches");
}
