#include "support/log_spdlog.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "support/json.h"

namespace loongforge::support {
namespace {

// A line goes out in one write, so that lines of several processes on one terminal do not mix
// either.
void write_fd(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;  // nobody to tell: this is where faults are told
    text.remove_prefix(static_cast<size_t>(done));
  }
}

class FdSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FdSink(int fd) : fd_(fd) {}
  void write_raw(std::string_view line) {
    std::string text(line);
    text += '\n';
    std::lock_guard lock(mutex_);
    write_fd(fd_, text);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    write_fd(fd_, {text.data(), text.size()});
  }
  void flush_() override {}

 private:
  const int fd_;
};

struct Installed {
  Installed* replaced = nullptr;  // the one before
  std::shared_ptr<FdSink> sink;
  std::unique_ptr<spdlog::logger> logger;
  LogFormat format;
  bool colour;
};

// Kept for the life of the process: a thread may log while the statics are destroyed, or while
// options are replaced.
std::atomic<Installed*> g_installed{nullptr};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// The length of the valid UTF-8 character at the start of text, 0 when there is none.
size_t utf8_length(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned first = at(0);
  size_t length = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  bool overlong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  bool surrogate = first == 0xED && at(1) >= 0xA0;
  bool above = first == 0xF4 && at(1) >= 0x90;
  return overlong || surrogate || above ? 0 : length;
}

// Names out of files stand in messages: what is not UTF-8, and (for a terminal) control characters,
// become '?'.
std::string cleaned(std::string_view message, bool controls_too) {
  std::string out;
  out.reserve(message.size());
  while (!message.empty()) {
    size_t length = utf8_length(message);
    auto c = static_cast<unsigned char>(message[0]);
    bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    if (length == 0 || (controls_too && control)) {
      out += '?';
      length = 1;
    } else {
      out += message.substr(0, length);
    }
    message.remove_prefix(length);
  }
  return out;
}

std::string text_line(LogLevel level, std::string_view message, bool colour) {
  std::string mark;
  if (level == LogLevel::kDebug) mark = "debug: ";
  if (level == LogLevel::kWarning) mark = colour ? "\033[33mwarning:\033[0m " : "warning: ";
  if (level == LogLevel::kError) mark = colour ? "\033[31merror:\033[0m " : "error: ";
  return mark + cleaned(message, true);
}

void sink(LogLevel level, std::string_view message) {
  Installed* installed = g_installed.load(std::memory_order_acquire);
  spdlog::level::level_enum at = level_of(level);
  if (!installed->logger->should_log(at)) return;
  std::string line = installed->format == LogFormat::kJson
                         ? Json(cleaned(message, false)).dump()
                         : text_line(level, message, installed->colour);
  installed->logger->log(at, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

bool wants_colour(int fd) {
  const char *no_colour = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  return isatty(fd) == 1 && (no_colour == nullptr || *no_colour == '\0') && term != nullptr &&
         *term != '\0' && std::strcmp(term, "dumb") != 0;
}

void install_log(const LogOptions& options) {
  auto installed = std::make_unique<Installed>();
  installed->sink = std::make_shared<FdSink>(options.fd);
  installed->logger = std::make_unique<spdlog::logger>("loongforge", installed->sink);
  installed->logger->set_level(level_of(options.level));
  installed->format = options.format;
  installed->colour = wants_colour(options.fd);
  bool json = options.format == LogFormat::kJson;
  installed->logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})" : "[%H:%M:%S] %v",
      json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local, "\n"));
  installed->replaced = g_installed.load(std::memory_order_acquire);
  g_installed.store(installed.release(), std::memory_order_release);
  set_log_sink(&sink);
}

void write_log_line(std::string_view line) {
  if (Installed* installed = g_installed.load(std::memory_order_acquire)) {
    installed->sink->write_raw(line);
    return;
  }
  std::string text(line);
  text += '\n';
  write_fd(STDERR_FILENO, text);
}

bool parse_log_level(std::string_view word, LogLevel* level) noexcept {
  constexpr std::pair<std::string_view, LogLevel> kWords[] = {{"debug", LogLevel::kDebug},
                                                              {"info", LogLevel::kInfo},
                                                              {"warning", LogLevel::kWarning},
                                                              {"error", LogLevel::kError}};
  for (const auto& [name, value] : kWords) {
    if (word != name) continue;
    *level = value;
    return true;
  }
  return false;
}

}  // namespace loongforge::support
