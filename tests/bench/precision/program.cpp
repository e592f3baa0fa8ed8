#include "bench/precision/program.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace loongforge::bench {
namespace {

// The signals that ask to stop, and a child's end: held back while this lives, so that they can be
// waited for one by one.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      sigaction(each, nullptr, &now);
      if (now.sa_handler != SIG_IGN) sigaddset(&set_, each);
    }
    sigaddset(&set_, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);  // ignored, as a parent may have left it, it would not come
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int wait() const { return sigwaitinfo(&set_, nullptr); }
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t set_, before_;
};

[[noreturn]] void become(const std::vector<std::string>& words, int log, pid_t parent,
                         const HeldSignals& held) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);  // it died before it could be told
  held.release();
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

int run_program(const std::vector<std::string>& words, const std::filesystem::path& log) {
  const File file = File::append(log);
  const HeldSignals held;
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw_failed(words[0], std::string("cannot be started: ") + strerror(errno));
  if (child == 0) become(words, file.fd(), parent, held);
  int status = 0, stopped_by = 0, interrupts = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    const int got = held.wait();
    if (got <= 0 || got == SIGCHLD) continue;
    if (stopped_by == 0) stopped_by = got;
    if (got == SIGINT) ++interrupts;
    // Never as SIGINT: a terminal sends that to the program too, and its second one ends training
    // without saving.
    kill(child, interrupts > 1 ? SIGKILL : SIGTERM);
  }
  if (ended < 0) throw_failed(words[0], std::string("cannot be waited for: ") + strerror(errno));
  if (stopped_by != 0)
    throw Error(static_cast<ErrorCode>(128 + stopped_by), {},
                std::string("stopped by SIG") + sigabbrev_np(stopped_by),
                "run the same command again");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace loongforge::bench
