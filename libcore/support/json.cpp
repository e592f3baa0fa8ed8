#include "support/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/printable.h"

namespace loongforge::support {
namespace {

constexpr size_t kMaxDepth = 128;

// The members' names of one object as an open-addressing hash table, so that objects of 100,000
// members (vocabularies) are checked in linear time.
const std::string* duplicate_key(const Json::Object& members, std::vector<uint32_t>& table) {
  const size_t n = members.size();
  if (n <= 8) {
    for (size_t i = 1; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (members[i].first == members[j].first) return &members[i].first;
      }
    }
    return nullptr;
  }
  size_t slots = 32;
  while (slots < n * 2) slots *= 2;
  table.assign(slots, 0);  // 0: free, else index + 1
  for (size_t i = 0; i < n; ++i) {
    const std::string& key = members[i].first;
    size_t slot = std::hash<std::string_view>{}(key) & (slots - 1);
    while (table[slot] != 0) {
      if (members[table[slot] - 1].first == key) return &key;
      slot = (slot + 1) & (slots - 1);
    }
    table[slot] = static_cast<uint32_t>(i + 1);
  }
  return nullptr;
}

// Builds Json values from nlohmann's events. Containers under construction live on a stack of their
// own and are moved into their parent when they end.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::string_view where) : text_(text), where_(where) {}
  Json take() { return std::move(result_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return add(Json(static_cast<int64_t>(value)));
    }
    return add(Json(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return push(false); }
  bool start_array(size_t) override { return push(true); }
  bool key(string_t& name) override {
    levels_.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    Level level = pop();
    if (const std::string* key = duplicate_key(level.object, table_)) {
      throw_bad_data(std::string(where_),
                     "duplicate key \"" + printable(*key, 80) + "\"" + parents());
    }
    return add(Json(std::move(level.object)));
  }
  bool end_array() override { return add(Json(pop().array)); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& ex) override {
    // The library's message is "[json.exception.parse_error.101] parse error at line 1, column 2:
    // <fault>"; its line and column are taken from the text instead, to go where this suite puts
    // them.
    std::string_view fault = ex.what();
    if (const size_t at = fault.find("] "); at != std::string_view::npos)
      fault.remove_prefix(at + 2);
    if (fault.rfind("parse error", 0) == 0) {
      if (const size_t at = fault.find(": "); at != std::string_view::npos)
        fault.remove_prefix(at + 2);
    }
    const std::string_view before =
        text_.substr(0, std::min(text_.size(), position > 0 ? position - 1 : 0));
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t line_start =
        before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    std::string where(where_);
    if (text_.find('\n') != std::string_view::npos) where += ":" + std::to_string(line);
    throw_bad_data(std::move(where), "invalid JSON at column " +
                                         std::to_string(before.size() - line_start + 1) + ": " +
                                         printable(fault, 200));
  }

 private:
  struct Level {
    bool is_array;
    std::string key;  // of the member that is being read
    Json::Array array;
    Json::Object object;
  };

  bool push(bool is_array) {
    if (levels_.size() >= kMaxDepth) {
      throw_bad_data(std::string(where_),
                     "JSON nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    levels_.push_back(Level{is_array, {}, {}, {}});
    return true;
  }

  Level pop() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return level;
  }

  bool add(Json value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_array) {
      levels_.back().array.push_back(std::move(value));
    } else {
      levels_.back().object.emplace_back(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }

  std::string parents() const {
    std::string path;
    for (const Level& level : levels_) {
      path += path.empty() ? " in " : level.is_array ? "" : ".";
      path += level.is_array ? '[' + std::to_string(level.array.size()) + ']'
                             : printable(level.key, 80);
    }
    return path;
  }

  std::string_view text_, where_;
  Json result_;
  std::vector<Level> levels_;
  std::vector<uint32_t> table_;
};

// Length of the valid UTF-8 sequence at text[i] (>= 0x80); 0 when there is none.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto continues = [&](size_t k) { return (byte(k) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0), next = byte(1);
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xe0 && next < 0xa0) return 0;  // overlong
    if (lead == 0xed && next > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xf0 && next < 0x90) return 0;  // overlong
    if (lead == 0xf4 && next > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

void write_string(std::string_view text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const size_t length = utf8_length(text, i);
      if (length == 0) {
        throw_failed({}, "text that is not valid UTF-8 cannot be written as JSON: \"" +
                             printable(text, 80) + "\"");
      }
      out.append(text, i, length);
      i += length;
      continue;
    }
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20) {
          static constexpr char kHex[] = "0123456789abcdef";
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += text[i];
        }
    }
    ++i;
  }
  out += '"';
}

// Shortest digits that read back the same; plain notation for exponents -4 to 15, as Python writes
// them, so that files passed through look as they did.
void write_double(double value, std::string& out) {
  if (!std::isfinite(value)) throw_failed({}, "NaN and infinity cannot be written as JSON");
  char buffer[400];
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0.0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto [end, ec] =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  (void)ec;  // the longest double takes fewer characters than the buffer has
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  out += text;
  if (plain && text.find('.') == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  Writer(int indent, bool sort_keys, std::string& out)
      : indent_(indent), sort_keys_(sort_keys), out_(out) {}

  void write(const Json& value, size_t depth) {
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      out_ += std::to_string(value.as_int());
    } else if (value.is_double()) {
      write_double(value.as_double(), out_);
    } else if (value.is_string()) {
      write_string(value.as_string(), out_);
    } else if (value.is_array()) {
      write_array(value.as_array(), depth);
    } else {
      write_object(value.as_object(), depth);
    }
  }

 private:
  void line(size_t depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(depth * static_cast<size_t>(indent_), ' ');
  }

  void write_array(const Json::Array& array, size_t depth) {
    out_ += '[';
    for (size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out_ += ',';
      line(depth + 1);
      write(array[i], depth + 1);
    }
    if (!array.empty()) line(depth);
    out_ += ']';
  }

  void write_object(const Json::Object& object, size_t depth) {
    std::vector<const Json::Member*> members;
    members.reserve(object.size());
    for (const Json::Member& member : object) members.push_back(&member);
    if (sort_keys_) {
      std::sort(members.begin(), members.end(),
                [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += ',';
      line(depth + 1);
      write_string(members[i]->first, out_);
      out_ += indent_ < 0 ? ":" : ": ";
      write(members[i]->second, depth + 1);
    }
    if (!members.empty()) line(depth);
    out_ += '}';
  }

  int indent_;
  bool sort_keys_;
  std::string& out_;
};

[[noreturn]] void wrong_type(std::string_view what, const Json& value, const char* expected) {
  throw_bad_data({}, std::string(what) + " is " + value.type_name() + ", not " + expected);
}

}  // namespace

[[gnu::noinline]] Json::Json(const Json& other) : value_(other.value_) {}
[[gnu::noinline]] Json::Json(Json&& other) noexcept : value_(std::move(other.value_)) {}
[[gnu::noinline]] Json& Json::operator=(const Json& other) {
  value_ = other.value_;
  return *this;
}
[[gnu::noinline]] Json& Json::operator=(Json&& other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
[[gnu::noinline]] Json::~Json() = default;

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

Json::Json(uint64_t u) {
  if (u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw_bad_data({}, std::to_string(u) + " is too large for a JSON integer");
  }
  value_ = static_cast<int64_t>(u);
}

Json Json::parse(std::string_view text, std::string_view where) {
  // The library takes a zero byte for the end of the text; none may stand anywhere in JSON.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw_bad_data(std::string(where),
                   "invalid JSON: a zero byte at offset " + std::to_string(zero));
  }
  Builder builder(text, where);
  // Faults leave as exceptions of the builder; false is not returned.
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder,
                            nlohmann::json::input_format_t::json, true, false);
  return builder.take();
}

std::string Json::dump(int indent, bool sort_keys) const {
  std::string out;
  Writer(indent, sort_keys, out).write(*this, 0);
  return out;
}

const char* Json::type_name() const {
  static constexpr const char* kNames[] = {"null",   "boolean", "integer", "number",
                                           "string", "array",   "object"};
  return kNames[value_.index()];
}

bool Json::as_bool(std::string_view what) const {
  if (const bool* b = std::get_if<bool>(&value_)) return *b;
  wrong_type(what, *this, "boolean");
}

int64_t Json::as_int(std::string_view what) const {
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return *i;
  if (const double* d = std::get_if<double>(&value_)) {
    // -2^63 and 2^63 are exact doubles; the upper one is out of range.
    if (*d >= -0x1p63 && *d < 0x1p63 && std::floor(*d) == *d) return static_cast<int64_t>(*d);
  }
  wrong_type(what, *this, "integer");
}

double Json::as_double(std::string_view what) const {
  if (const double* d = std::get_if<double>(&value_)) return *d;
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  wrong_type(what, *this, "number");
}

const std::string& Json::as_string(std::string_view what) const {
  if (const auto* s = std::get_if<std::string>(&value_)) return *s;
  wrong_type(what, *this, "string");
}

const Json::Array& Json::as_array(std::string_view what) const {
  if (const auto* a = std::get_if<Array>(&value_)) return *a;
  wrong_type(what, *this, "array");
}

const Json::Object& Json::as_object(std::string_view what) const {
  if (const auto* o = std::get_if<Object>(&value_)) return *o;
  wrong_type(what, *this, "object");
}

Json::Array& Json::as_array(std::string_view what) {
  if (auto* a = std::get_if<Array>(&value_)) return *a;
  wrong_type(what, *this, "array");
}

Json::Object& Json::as_object(std::string_view what) {
  if (auto* o = std::get_if<Object>(&value_)) return *o;
  wrong_type(what, *this, "object");
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  for (const Member& member : *object) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

const Json& Json::at(std::string_view key, std::string_view what) const {
  if (const Json* value = find(key)) return *value;
  if (!is_object()) wrong_type(what, *this, "object");
  throw_bad_data({}, std::string(what) + " lacks key \"" + std::string(key) + "\"");
}

void Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  if (Json* present = find(key)) {
    *present = std::move(value);
  } else {
    as_object().emplace_back(std::string(key), std::move(value));
  }
}

void Json::erase(std::string_view key) {
  if (auto* object = std::get_if<Object>(&value_)) {
    std::erase_if(*object, [key](const Member& member) { return member.first == key; });
  }
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  as_array().push_back(std::move(value));
}

int64_t Json::get_int(std::string_view key, int64_t otherwise) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_int(key);
}

double Json::get_double(std::string_view key, double otherwise) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_double(key);
}

bool Json::get_bool(std::string_view key, bool otherwise) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_bool(key);
}

std::string Json::get_string(std::string_view key, std::string_view otherwise) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? std::string(otherwise) : value->as_string(key);
}

Json read_json(const std::string& path, uint64_t max_bytes) {
  return Json::parse(read_text(path, max_bytes), path);
}

}  // namespace loongforge::support
