// Code made at run time: runs, faults without ending the process, leaves handlers and rounding
// alone.
#include "isa_verify/runner.h"

#include <doctest/doctest.h>

#include <cfenv>
#include <cstring>

#include "isa_verify/samples.h"

namespace loongforge::isa_verify {
namespace {

std::vector<uint8_t> function_of(const std::string& rows) {
  return make_function(parse_operations(rows, "t")[0], 0, 0);
}

TEST_CASE("an operation's result is stored, an illegal or faulting one is reported") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  struct sigaction before {
  }, after{};
  sigaction(SIGILL, nullptr, &before);
  Frame frame{};
  const float j = 1.5F, k = 2.25F, sum = 3.75F;
  for (int n = 0; n < 8; ++n) {
    std::memcpy(frame.vectors[1] + 4 * n, &j, 4);
    std::memcpy(frame.vectors[2] + 4 * n, &k, 4);
  }
  {
    Runner runner;
    runner.load({function_of(kIllegal), function_of(kRight), function_of(kFaulting)});
    for (int again = 0; again < 3; ++again) {
      CHECK(runner.run(0, &frame) == Ending::kIllegal);
      CHECK(runner.run(2, &frame) == Ending::kFault);
      std::memset(frame.vector_out, 0, sizeof frame.vector_out);
      CHECK(runner.run(1, &frame) == Ending::kDone);
      CHECK(std::memcmp(frame.vector_out + 12, &sum, 4) == 0);
    }
    runner.load({function_of(kRight)});  // the memory is used again
    CHECK(runner.run(0, &frame) == Ending::kDone);
  }
  sigaction(SIGILL, nullptr, &after);
  CHECK((before.sa_handler == after.sa_handler));
}

TEST_CASE("the caller's rounding mode neither counts nor is lost") {
  if (!can_run(kHere)) return;
  Frame frame{};
  const float j = 1.0F, k = 0x1p-30F;
  std::memcpy(frame.vectors[1], &j, 4);
  std::memcpy(frame.vectors[2], &k, 4);
  Runner runner;
  runner.load({function_of(kRight)});
  std::fesetround(FE_UPWARD);
  CHECK(runner.run(0, &frame) == Ending::kDone);
  CHECK(std::fegetround() == FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  CHECK(std::memcmp(frame.vector_out, &j, 4) == 0);
}

}  // namespace
}  // namespace loongforge::isa_verify
