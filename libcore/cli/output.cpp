#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace loongforge::cli {
namespace {

[[noreturn]] void output_failed(int error) {
  if (error == EPIPE) throw OutputClosed();
  throw_failed("standard output", std::strerror(error), "what was printed is not complete");
}

}  // namespace

OutputClosed::OutputClosed()
    : Error(static_cast<ErrorCode>(128 + SIGPIPE), "standard output", "is closed") {}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_failed(errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) output_failed(errno);
  if (std::ferror(stdout) != 0) output_failed(EIO);
}

int terminal_width(int fd) {
  constexpr int kUnknown = 80, kLargest = 1000;
  const char* said = std::getenv("COLUMNS");
  int columns = said != nullptr ? std::atoi(said) : 0;
  winsize size{};
  if (columns <= 0 && isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns > 0 && columns <= kLargest ? columns : kUnknown;
}

void print_error(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace loongforge::cli
