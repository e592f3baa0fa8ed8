// Runs what follows as a user whom permissions stop.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

namespace loongforge::test {

// Root may write anywhere; a test of permissions is run as nobody then.
class NotRoot {
 public:
  NotRoot() : was_root_(geteuid() == 0) {
    if (was_root_) REQUIRE(seteuid(65534) == 0);
  }
  ~NotRoot() {
    if (was_root_ && seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

}  // namespace loongforge::test
