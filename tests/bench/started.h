// For tests: a program that is started, sent signals, and waited for; what it prints goes to a
// file.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace loongforge::test {

// Waits a minute at most; false where it did not come to be.
template <class Done>
bool comes_true(Done&& done) {
  for (int i = 0; i < 3000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return done();
}

class Started {
 public:
  // ignored: a signal that it starts with ignored, as nohup does with SIGHUP.
  Started(std::vector<std::string> words, const std::filesystem::path& log, int ignored = 0)
      : child_(fork()) {
    if (child_ != 0) return;
    for (const int each : {SIGINT, SIGTERM, SIGHUP})
      signal(each, each == ignored ? SIG_IGN : SIG_DFL);
    const int to = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  ~Started() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  pid_t pid() const { return child_; }
  void send(int signal) const { REQUIRE(kill(child_, signal) == 0); }
  // The exit code, or -signal where one ended it. It fails where that takes over a minute.
  int wait() {
    int status = 0;
    REQUIRE(comes_true([&] { return waitpid(child_, &status, WNOHANG) == child_; }));
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t child_;
};

}  // namespace loongforge::test
