// Runs a program as a user would: words, extra environment, what it printed and how it ended.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/places.h"

namespace loongforge::test {

struct Outcome {
  int code = -1;  // the exit code, or 128 + signal
  std::string out, err;
};

struct Launch {
  std::vector<std::string> words;  // words[0]: the program's path
  std::map<std::string, std::string>
      environment{};  // added to this process's; other LOONGFORGE_* variables are removed
  const char* stdout_to = nullptr;  // a file instead of Outcome::out
};

namespace detail {

[[noreturn]] inline void become(const Launch& launch, int out, int err) {
  std::vector<std::string> cleared;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.starts_with("LOONGFORGE_")) cleared.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : cleared) unsetenv(name.c_str());
  for (const auto& [name, value] : launch.environment) setenv(name.c_str(), value.c_str(), 1);
  if (launch.stdout_to != nullptr) out = open(launch.stdout_to, O_WRONLY);
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : launch.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(127);
}

}  // namespace detail

inline Outcome run(const Launch& launch) {
  std::array<int, 2> out{}, err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) detail::become(launch, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  Outcome outcome;
  std::array<pollfd, 2> polled{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  for (int open_ends = 2; open_ends > 0;) {
    poll(polled.data(), polled.size(), -1);
    for (pollfd& end : polled) {
      if (end.fd < 0 || end.revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = read(end.fd, buffer.data(), buffer.size());
      if (got > 0) {
        (&end == &polled[0] ? outcome.out : outcome.err)
            .append(buffer.data(), static_cast<size_t>(got));
      } else {
        close(end.fd);
        end.fd = -1;
        --open_ends;
      }
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// A program of the build: "loongforge", "loongforge-train".
inline std::string program(const std::string& name) {
  return (binary_dir() / "bin" / name).string();
}

}  // namespace loongforge::test
