#include "base/env.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace loongforge {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& value, const std::string& allowed) {
  throw_usage("environment variable " + std::string(name) + " is \"" + value + "\"",
              "it must be " + allowed);
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string number(double x) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof text, x).ptr;
  return std::string(text, end);
}

}  // namespace

std::optional<std::string> env_text(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<bool> env_flag(const char* name) {
  std::optional<std::string> value = env_text(name);
  if (!value) return std::nullopt;
  std::string word = lower(*value);
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  refuse(name, *value, "1 or 0");
}

std::optional<int64_t> env_int(const char* name, int64_t least, int64_t most) {
  std::optional<std::string> value = env_text(name);
  if (!value) return std::nullopt;
  int64_t result = 0;
  const char* end = value->data() + value->size();
  auto [stop, error] = std::from_chars(value->data(), end, result);
  if (error != std::errc() || stop != end || result < least || result > most) {
    refuse(name, *value,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return result;
}

std::optional<double> env_double(const char* name, double least, double most) {
  std::optional<std::string> value = env_text(name);
  if (!value) return std::nullopt;
  double result = 0;
  const char* end = value->data() + value->size();
  auto [stop, error] = std::from_chars(value->data(), end, result);
  bool inside = result >= least && result <= most;  // false for NaN
  if (error != std::errc() || stop != end || !inside) {
    refuse(name, *value, "a number from " + number(least) + " to " + number(most));
  }
  return result;
}

std::optional<size_t> env_choice(const char* name, std::span<const std::string_view> allowed) {
  std::optional<std::string> value = env_text(name);
  if (!value) return std::nullopt;
  std::string list;
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (*value == allowed[i]) return i;
    if (i != 0) list += i + 1 == allowed.size() ? " or " : ", ";
    list += allowed[i];
  }
  refuse(name, *value, list);
}

}  // namespace loongforge
