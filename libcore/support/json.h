// JSON values. The adapter to nlohmann::json: its header stands in json.cpp only.
// Parsing refuses duplicate keys, nesting deeper than 128, invalid UTF-8, trailing text, comments,
// NaN. Object keys keep their order of appearance. Integers beyond int64_t become doubles. find(),
// at() and set() search linearly: walk or build large objects (vocabularies) through as_object().
// Thread-safety: a value; const access from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/api.h"
#include "base/error.h"

namespace loongforge::support {

class LF_API Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() noexcept {}  // null
  // Out of line: they cost every user much compile time otherwise, and draw false warnings out of
  // g++ 12.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  Json(std::nullptr_t) {}
  Json(bool b) : value_(b) {}
  Json(int64_t i) : value_(i) {}
  Json(int i) : value_(int64_t{i}) {}
  Json(uint64_t u);  // kBadData Error above 2^63 - 1
  Json(double d) : value_(d) {}
  Json(std::string s) : value_(std::move(s)) {}
  Json(std::string_view s) : value_(std::string(s)) {}
  Json(const char* s) : value_(std::string(s)) {}
  Json(Array a) : value_(std::move(a)) {}
  Json(Object o) : value_(std::move(o)) {}
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  // where: the file's name (or file:line), for errors. Throws Error(kBadData) that says where and
  // why.
  static Json parse(std::string_view text, std::string_view where);
  // indent < 0: one line. Numbers: shortest form that reads back the same; doubles always with '.'
  // or exponent. sort_keys orders members by byte value. Non-ASCII text stays UTF-8.
  std::string dump(int indent = -1, bool sort_keys = false) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  const char* type_name()
      const;  // "null", "boolean", "integer", "number", "string", "array", "object"

  // Typed access. what names the value in the Error(kBadData) thrown when the type is another:
  // "<what> is <type>, not <expected>".
  bool as_bool(std::string_view what = "value") const;
  int64_t as_int(
      std::string_view what = "value") const;  // also a double that holds an integer exactly
  double as_double(std::string_view what = "value") const;  // also an integer
  const std::string& as_string(std::string_view what = "value") const;
  const Array& as_array(std::string_view what = "value") const;
  const Object& as_object(std::string_view what = "value") const;
  Array& as_array(std::string_view what = "value");
  Object& as_object(std::string_view what = "value");

  // Objects. find: null when absent or when this is no object. at: kBadData Error "<what> lacks key
  // <key>".
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  const Json& at(std::string_view key, std::string_view what = "object") const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  void set(std::string_view key, Json value);  // replaces or appends; null becomes an object
  void erase(std::string_view key);
  void push_back(Json value);  // null becomes an array
  // The member if present and not null, else the default.
  int64_t get_int(std::string_view key, int64_t otherwise) const;
  double get_double(std::string_view key, double otherwise) const;
  bool get_bool(std::string_view key, bool otherwise) const;
  std::string get_string(std::string_view key, std::string_view otherwise) const;

  friend LF_API bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

// Reads and parses a file. kNoInput when absent, kBadData when larger than max_bytes or wrong.
LF_API Json read_json(const std::string& path, uint64_t max_bytes = uint64_t{256} << 20);

// Runs f, a reader of one file: an Error out of it that names no place, as the accessors above make
// them, gets `where`.
template <class F>
auto in_file(const std::string& where, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& e) {
    if (!e.where().empty()) throw;
    throw Error(e.code(), where, e.message(), e.hint());
  }
}

}  // namespace loongforge::support
