#include "train/signals.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace loongforge::train;

TEST_CASE("signals set a flag that the loop reads, and the handlers before come back") {
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  {
    const SignalGuard guard;
    CHECK(SignalGuard::requested() == StopRequest::kNone);
    std::raise(SIGTERM);
    CHECK(SignalGuard::requested() == StopRequest::kSaveAndRequeue);
  }
  {
    const SignalGuard guard;
    CHECK(SignalGuard::requested() == StopRequest::kNone);
    std::raise(SIGUSR1);
    CHECK(SignalGuard::requested() == StopRequest::kSaveAndRequeue);
    std::raise(SIGINT);
    CHECK(SignalGuard::requested() == StopRequest::kSaveAndStop);
  }
  {
    const SignalGuard guard;
    std::raise(SIGHUP);
    CHECK(SignalGuard::requested() == StopRequest::kSaveAndRequeue);
  }
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  CHECK((after.sa_handler == before.sa_handler));
}

TEST_CASE("a hang-up that was ignored, as nohup does, stays so") {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  std::signal(SIGHUP, SIG_IGN);
  {
    const SignalGuard guard;
    std::raise(SIGHUP);
    CHECK(SignalGuard::requested() == StopRequest::kNone);
  }
  struct sigaction after {};
  sigaction(SIGHUP, nullptr, &after);
  CHECK((after.sa_handler == SIG_IGN));
  sigaction(SIGHUP, &before, nullptr);
}
