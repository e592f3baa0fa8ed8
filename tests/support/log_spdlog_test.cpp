#include "support/log_spdlog.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "support/json.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::support;

namespace {

// What the body logs under the options.
template <class Body>
std::string logged(LogOptions options, Body body) {
  test::TempDir dir;
  File file = File::create(dir / "log");
  options.fd = file.fd();
  install_log(options);
  body();
  set_log_sink(nullptr);
  return read_text(dir / "log");
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Whether text has the form of pattern, where '#' stands for any digit.
bool has_form(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (pattern[i] == '#' ? !digit : text[i] != pattern[i]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("log sink: text for people, below the level nothing, no colour in a file") {
  auto got = lines(logged({.level = LogLevel::kInfo}, [] {
    log(LogLevel::kDebug, "hidden");
    log_info("plain {} %s");
    log_warning("careful");
    log(LogLevel::kError, "broken");
    write_log_line("raw");
  }));
  REQUIRE(got.size() == 4);
  CHECK(has_form(got[0], "[##:##:##] plain {} %s"));
  CHECK(has_form(got[1], "[##:##:##] warning: careful"));
  CHECK(has_form(got[2], "[##:##:##] error: broken"));
  CHECK(got[3] == "raw");
}

TEST_CASE("log sink: JSON lines parse, whatever stands in the message") {
  std::string nasty = "quote \" back \\ line\nbell \a bad \xff\xc3 euro \xe2\x82\xac";
  auto got = lines(logged({.level = LogLevel::kDebug, .format = LogFormat::kJson}, [&] {
    log(LogLevel::kDebug, "first");
    log_warning(nasty);
    write_log_line(R"({"step":1})");
  }));
  REQUIRE(got.size() == 3);
  Json first = Json::parse(got[0], "log");
  CHECK(first.get_string("level", "") == "debug");
  CHECK(first.get_string("message", "") == "first");
  CHECK(has_form(first.get_string("time", ""), "####-##-##T##:##:##.###Z"));
  Json second = Json::parse(got[1], "log");
  CHECK(second.get_string("level", "") == "warning");
  CHECK(second.get_string("message", "") ==
        "quote \" back \\ line\nbell \a bad ?? euro \xe2\x82\xac");
  CHECK(Json::parse(got[2], "log").get_int("step", 0) == 1);
}

TEST_CASE("log sink: text shows no control characters out of files") {
  auto got = lines(logged({}, [] { log_info("name \033[2J\a \xff end"); }));
  REQUIRE(got.size() == 1);
  CHECK(got[0].substr(11) == "name ?[2J? ? end");
}

TEST_CASE("log sink: colour on a terminal that has it, none with NO_COLOR") {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
    MESSAGE("SKIPPED: no pseudo terminal here");
    return;
  }
  int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const char* said = getenv("TERM");
  const std::string term = said != nullptr ? said : "";
  struct Case {
    const char *term, *no_colour;
    bool colour;
  };
  for (const auto& [kind, no_colour, colour] :
       {Case{"xterm", "", true}, Case{"xterm", "1", false}, Case{"dumb", "", false},
        Case{"", "", false}, Case{nullptr, "", false}}) {
    setenv("NO_COLOR", no_colour, 1);
    if (kind != nullptr)
      setenv("TERM", kind, 1);
    else
      unsetenv("TERM");
    CHECK(wants_colour(terminal) == colour);
    install_log({.fd = terminal});
    log_warning("careful");
    set_log_sink(nullptr);
    char text[256];
    ssize_t n = read(master, text, sizeof text);
    REQUIRE(n > 0);
    CHECK((std::string(text, static_cast<size_t>(n)).find("\033[33m") != std::string::npos) ==
          colour);
  }
  unsetenv("NO_COLOR");
  if (said != nullptr) setenv("TERM", term.c_str(), 1);
  close(terminal);
  close(master);
}

TEST_CASE("log sink: lines of several threads stay whole") {
  auto got = lines(logged({.format = LogFormat::kJson}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) log_info(std::string(100, static_cast<char>('a' + t)));
      });
    }
    for (auto& thread : threads) thread.join();
  }));
  CHECK(got.size() == 800);
  for (const auto& line : got) {
    std::string message = Json::parse(line, "log").get_string("message", "");
    REQUIRE(message.size() == 100);
    REQUIRE(std::count(message.begin(), message.end(), message[0]) == 100);
  }
}

TEST_CASE("log sink: level words") {
  LogLevel level = LogLevel::kInfo;
  CHECK(parse_log_level("warning", &level));
  CHECK(level == LogLevel::kWarning);
  CHECK(!parse_log_level("loud", &level));
  CHECK(level == LogLevel::kWarning);
}
