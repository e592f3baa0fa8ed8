#include "base/stop.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void (*handler_of(int signal))(int) {
  struct sigaction now;
  sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

}  // namespace

TEST_CASE("stop: a signal becomes an Error with the code of a shell, at the next look") {
  check_stop();  // nothing without a guard
  for (const int signal : kSignals) {
    const auto before = handler_of(signal);
    {
      const StopGuard guard;
      check_stop();
      raise(signal);
      LF_CHECK_ERROR(check_stop(), static_cast<ErrorCode>(128 + signal), "stopped by SIG");
      LF_CHECK_ERROR(check_stop(), static_cast<ErrorCode>(128 + signal), "nothing was written");
    }
    check_stop();
    CHECK((handler_of(signal) == before));
  }
}

TEST_CASE("stop: what is ignored stays ignored") {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopGuard guard;
    CHECK((handler_of(SIGHUP) == SIG_IGN));
    raise(SIGHUP);
    check_stop();
  }
  CHECK((handler_of(SIGHUP) == SIG_IGN));
  std::signal(SIGHUP, before);
}

TEST_CASE("stop: a second signal ends the process at once") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const StopGuard guard;
    raise(SIGTERM);
    raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
}

TEST_CASE("stop: no file and no folder appears after the signal, and nothing is left of them") {
  const test::TempDir dir;
  const StopGuard guard;
  {
    FolderWriter folder(dir / "out", false);
    AtomicFile file(dir / "file");
    write_text_atomic(folder.temporary() / "inner", "x");
    raise(SIGTERM);
    LF_CHECK_ERROR(folder.commit(), static_cast<ErrorCode>(143), "stopped by SIGTERM");
    LF_CHECK_ERROR(file.commit(), static_cast<ErrorCode>(143), "stopped by SIGTERM");
  }
  CHECK(dir.entries() == 0);
}
