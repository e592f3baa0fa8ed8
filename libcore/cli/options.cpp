#include "cli/options.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "cli/suggest.h"

namespace loongforge::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse(const std::string& where, std::string_view text,
                         const std::string& expected, std::string hint = {}) {
  throw Error(ErrorCode::kUsage, where, "'" + std::string(text) + "' is not " + expected,
              std::move(hint));
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

// The interval of a table row; "inf" stands for no bound.
struct Interval {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();
  bool low_open = true, high_open = true;

  explicit Interval(const char* domain) {
    if (domain == nullptr) return;
    const std::string_view text(domain);
    const size_t comma = text.find(',');
    assert(text.size() >= 4 && comma != std::string_view::npos);
    low_open = text.front() == '(';
    high_open = text.back() == ')';
    low = parse_number<double>(text.substr(1, comma - 1)).value();
    high = parse_number<double>(text.substr(comma + 1, text.size() - comma - 2)).value();
  }
  bool contains(double x) const {
    return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
  }
};

std::string plain(double x) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, x);
  return {buffer, result.ptr};
}

// "at least 1", "above 0 and at most 1"
std::string describe(const Interval& interval) {
  std::string text;
  if (std::isfinite(interval.low))
    text += (interval.low_open ? "above " : "at least ") + plain(interval.low);
  if (std::isfinite(interval.high)) {
    if (!text.empty()) text += " and ";
    text += (interval.high_open ? "below " : "at most ") + plain(interval.high);
  }
  return text;
}

void check_interval(const Option& option, double value, std::string_view text,
                    const std::string& where) {
  const Interval interval(option.domain);
  if (interval.contains(value)) return;
  throw Error(ErrorCode::kUsage, where, "'" + std::string(text) + "' is out of range",
              "give a value " + describe(interval));
}

std::optional<bool> parse_bool(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") return false;
  return std::nullopt;
}

std::string check_choice(const Option& option, std::string_view text, const std::string& where) {
  const std::vector<std::string> choices = split(option.domain, '|');
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
  std::string expected = "one of";
  for (const std::string& choice : choices)
    expected += (choice == choices.front() ? " " : ", ") + choice;
  refuse(where, text, expected, did_you_mean(text, choices));
}

// "a, b" is the list "a,b".
std::string tidy_list(std::string_view text) {
  std::string list;
  for (const std::string& word : split(text, ',')) list += "," + std::string(trimmed(word));
  return list.substr(1);
}

}  // namespace

std::string option_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::vector<std::string> option_names(const Option& option) { return split(option.names, '|'); }

std::string canonical_name(const Option& option) { return option_names(option).front(); }

std::string value_word(const Option& option) {
  switch (option.type) {
    case OptionType::kFlag:
      return {};
    case OptionType::kInt:
      return "N";
    case OptionType::kDouble:
      return "X";
    case OptionType::kChoice:
    case OptionType::kFlagOrChoice:
      return option.domain;
    case OptionType::kString:
      return option.domain != nullptr ? option.domain : "TEXT";
    case OptionType::kPath:
      return option.domain != nullptr ? option.domain : "PATH";
    case OptionType::kList:
      return option.domain != nullptr ? option.domain : "A,B,...";
    case OptionType::kFlagOrPath:
      return option.domain != nullptr ? option.domain : "true|PATH";
  }
  return {};
}

const Option* find_option(std::span<const Option> options, std::string_view name) {
  const std::string key = option_key(name);
  for (const Option& option : options)
    for (const std::string& candidate : option_names(option))
      if (option_key(candidate) == key) return &option;
  return nullptr;
}

std::string environment_name(const Option& option) {
  std::string name = "LOONGFORGE_" + option_key(canonical_name(option));
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string check_value(const Option& option, std::string_view text, const std::string& where) {
  switch (option.type) {
    case OptionType::kFlag: {
      const std::optional<bool> value = parse_bool(text);
      if (!value) refuse(where, text, "true or false");
      return *value ? "true" : "false";
    }
    case OptionType::kInt: {
      const std::optional<int64_t> value = parse_number<int64_t>(text);
      if (!value) refuse(where, text, "an integer");
      check_interval(option, static_cast<double>(*value), text, where);
      return std::to_string(*value);
    }
    case OptionType::kDouble: {
      const std::optional<double> value = parse_number<double>(text);
      if (!value || !std::isfinite(*value)) refuse(where, text, "a number");
      check_interval(option, *value, text, where);
      return std::string(text);
    }
    case OptionType::kChoice:
      return check_choice(option, text, where);
    case OptionType::kFlagOrChoice:
      if (const std::optional<bool> value = parse_bool(text)) return *value ? "true" : "false";
      return check_choice(option, text, where);
    case OptionType::kFlagOrPath:
      if (const std::optional<bool> value = parse_bool(text)) return *value ? "true" : "false";
      [[fallthrough]];
    case OptionType::kPath:
    case OptionType::kList:
    case OptionType::kString:
      if (text.empty()) throw Error(ErrorCode::kUsage, where, "the value is empty");
      if (text.find('\0') != std::string_view::npos)
        throw Error(ErrorCode::kUsage, where, "the value holds a NUL byte");
      if (option.type != OptionType::kList) return std::string(text);
      if (trimmed(text).empty()) throw Error(ErrorCode::kUsage, where, "the value is empty");
      return tidy_list(text);
  }
  return {};
}

std::string check_json_value(const Option& option, const support::Json& value,
                             const std::string& where) {
  const auto wrong_type = [&](const char* expected) {
    throw Error(ErrorCode::kUsage, where,
                std::string("the value is ") + value.type_name() + ", not " + expected);
  };
  switch (option.type) {
    case OptionType::kFlag:
      if (!value.is_bool()) wrong_type("boolean");
      return value.as_bool() ? "true" : "false";
    case OptionType::kInt:
      if (!value.is_int() &&
          !(value.is_double() && std::floor(value.as_double()) == value.as_double() &&
            std::fabs(value.as_double()) < 0x1p53))
        wrong_type("integer");
      return check_value(option, std::to_string(value.as_int()), where);
    case OptionType::kDouble:
      if (!value.is_number()) wrong_type("number");
      return check_value(option, plain(value.as_double()), where);
    case OptionType::kFlagOrPath:
    case OptionType::kFlagOrChoice:
      if (value.is_bool()) return value.as_bool() ? "true" : "false";
      break;
    case OptionType::kList: {
      if (!value.is_array()) break;
      std::string joined;
      for (const support::Json& item : value.as_array()) {
        if (!item.is_string()) wrong_type("array of strings");
        joined += (joined.empty() ? "" : ",") + item.as_string();
      }
      return check_value(option, joined, where);
    }
    default:
      break;
  }
  if (!value.is_string())
    wrong_type(option.type == OptionType::kList ? "array of strings" : "string");
  return check_value(option, value.as_string(), where);
}

Options::Options(std::span<const Option> table) {
  entries_.reserve(table.size());
  for (const Option& option : table) {
    if (option.preset == nullptr)
      entries_.push_back({&option, {}, Source::kUnset});
    else
      entries_.push_back(
          {&option, check_value(option, option.preset, option.names), Source::kDefault});
  }
}

const Options::Entry& Options::entry(std::string_view name) const {
  const std::string key = option_key(name);
  for (const Entry& entry : entries_)
    for (const std::string& candidate : option_names(*entry.option))
      if (option_key(candidate) == key) return entry;
  throw Error(ErrorCode::kFailed, "option table", "no option is named " + std::string(name),
              "this is a fault of the program, please report it");
}

void Options::set(std::string_view name, std::string text, Source source) {
  Entry& target = const_cast<Entry&>(entry(name));
  if (source < target.source) return;
  target.text = std::move(text);
  target.source = source;
}

Source Options::source(std::string_view name) const { return entry(name).source; }

bool Options::given(std::string_view name) const {
  const Entry& found = entry(name);
  if (found.source == Source::kFlag || found.source == Source::kEnvironment) return true;
  if (found.source != Source::kConfig) return false;
  const Option& option = *found.option;
  if (option.preset == nullptr) return true;
  if (option.type == OptionType::kDouble)  // "16" and 16.0 are one value
    return parse_number<double>(found.text) != parse_number<double>(option.preset);
  return found.text != option.preset;
}

void Options::refuse_given(std::initializer_list<const char*> names, const char* what,
                           const char* hint) const {
  for (const char* name : names)
    if (given(name)) throw Error(ErrorCode::kUsage, "", place(name) + " " + what, hint);
}

std::string Options::place(std::string_view name) const {
  const Entry& found = entry(name);
  const std::string canonical = canonical_name(*found.option);
  switch (found.source) {
    case Source::kFlag:
      return "--" + canonical;
    case Source::kEnvironment:
      return environment_name(*found.option);
    case Source::kConfig:
      return canonical + " in " + config_path;
    case Source::kDefault:
      return "default of --" + canonical;
    case Source::kUnset:
      break;
  }
  return "--" + canonical;
}

bool Options::flag(std::string_view name) const { return entry(name).text == "true"; }

int64_t Options::integer(std::string_view name) const {
  const Entry& found = entry(name);
  assert(found.source != Source::kUnset);
  return parse_number<int64_t>(found.text).value();
}

double Options::number(std::string_view name) const {
  return parse_number<double>(entry(name).text).value();
}

const std::string& Options::text(std::string_view name) const { return entry(name).text; }

std::vector<std::string> Options::list(std::string_view name) const {
  std::vector<std::string> words;
  for (std::string& word : split(entry(name).text, ','))
    if (!word.empty()) words.push_back(std::move(word));
  return words;
}

const std::string& Options::require(std::string_view name, std::string hint) const {
  const Entry& found = entry(name);
  if (found.source == Source::kUnset)
    throw Error(ErrorCode::kUsage, "", "--" + canonical_name(*found.option) + " is missing",
                std::move(hint));
  return found.text;
}

support::Json Options::resolved() const {
  support::Json object = support::Json::object();
  for (const Entry& entry : entries_) {
    if (entry.source == Source::kUnset) continue;
    const std::string key = option_key(canonical_name(*entry.option));
    if (key == "config") continue;  // a configuration file does not name another
    switch (entry.option->type) {
      case OptionType::kFlag:
        object.set(key, entry.text == "true");
        break;
      case OptionType::kInt:
        object.set(key, integer(key));
        break;
      case OptionType::kDouble:
        object.set(key, number(key));
        break;
      case OptionType::kList: {
        support::Json words = support::Json::array();
        for (std::string& word : list(key)) words.push_back(std::move(word));
        object.set(key, std::move(words));
        break;
      }
      case OptionType::kFlagOrPath:
      case OptionType::kFlagOrChoice:
        if (entry.text == "true" || entry.text == "false")
          object.set(key, entry.text == "true");
        else
          object.set(key, entry.text);
        break;
      default:
        object.set(key, entry.text);
        break;
    }
  }
  return object;
}

support::Json Options::sources() const {
  static constexpr const char* kNames[] = {"unset", "default", "config", "environment", "flag"};
  support::Json object = support::Json::object();
  for (const Entry& entry : entries_)
    if (entry.source != Source::kUnset)
      object.set(option_key(canonical_name(*entry.option)), kNames[static_cast<int>(entry.source)]);
  return object;
}

}  // namespace loongforge::cli
