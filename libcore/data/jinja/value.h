// Values of the template language: Python's, as far as templates see them. Immutable except for
// namespaces and the like (class Object) and the position of generators. Thread-safety: a value
// belongs to the rendering that made it. Invariants: strings are valid UTF-8; containers nest at
// most kMaxNesting deep, so recursion over them is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/json.h"

namespace loongforge::data::jinja {

// A fault of the template or its data. The interpreter adds file and line.
struct Fault {
  std::string message, hint;
};
[[noreturn]] void fault(std::string message, std::string hint = {});

inline constexpr int kMaxNesting = 160;

// What a rendering may still spend. Every loop that depends on the template or its data draws on
// it.
class Budget {
 public:
  void work(uint64_t steps);  // throws Fault when used up
  void text(uint64_t bytes);

 private:
  uint64_t steps_ = 0, bytes_ = 0;
};

class Object;
struct ListData;
struct DictData;

class Value {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> why;  // "'x' is undefined"
  };

  Value() = default;  // None
  Value(bool b) : v_(b) {}
  Value(int64_t i) : v_(i) {}
  Value(int i) : v_(int64_t{i}) {}
  Value(size_t n) : v_(static_cast<int64_t>(n)) {}
  Value(double d) : v_(d) {}
  Value(std::string s) : v_(std::make_shared<const std::string>(std::move(s))) {}
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(const char* s) : Value(std::string(s)) {}
  Value(std::shared_ptr<const ListData> list) : v_(std::move(list)) {}
  Value(std::shared_ptr<const DictData> dict) : v_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : v_(std::move(object)) {}
  static Value undefined(std::string why);
  static Value from_json(const support::Json& json);

  bool is_none() const { return std::holds_alternative<std::monostate>(v_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_int() const { return std::holds_alternative<int64_t>(v_); }
  bool is_float() const { return std::holds_alternative<double>(v_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_integral() const { return is_bool() || is_int(); }
  bool is_string() const { return std::holds_alternative<std::shared_ptr<const std::string>>(v_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const ListData>>(v_); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const DictData>>(v_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(v_); }

  // REQUIRES: the matching kind (int64 and double also take the numbers below them).
  bool boolean() const { return std::get<bool>(v_); }
  int64_t integer() const { return is_bool() ? boolean() : std::get<int64_t>(v_); }
  double number() const {
    return is_float() ? std::get<double>(v_) : static_cast<double>(integer());
  }
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(v_); }
  const ListData& list() const { return *std::get<std::shared_ptr<const ListData>>(v_); }
  const std::shared_ptr<const ListData>& list_ptr() const {
    return std::get<std::shared_ptr<const ListData>>(v_);
  }
  const DictData& dict() const { return *std::get<std::shared_ptr<const DictData>>(v_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(v_); }
  const std::shared_ptr<Object>& object_ptr() const {
    return std::get<std::shared_ptr<Object>>(v_);
  }
  const std::string& why_undefined() const { return *std::get<Undefined>(v_).why; }

  std::string type_name() const;  // Python's: "str", "list", "NoneType"
  int nesting() const;
  bool same_as(const Value& other) const;  // Python's "is"

 private:
  std::variant<std::monostate, Undefined, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const ListData>, std::shared_ptr<const DictData>,
               std::shared_ptr<Object>>
      v_;
};

using Values = std::vector<Value>;
using Members = std::vector<std::pair<Value, Value>>;

enum class ListKind { kList, kTuple, kRange, kView, kGenerator };

struct ListData {
  ListKind kind = ListKind::kList;
  Values items;
  int nesting = 1;
  std::string label;               // range and views: how they print; generators: which
  std::vector<std::string> names;  // attributes of a named tuple
  mutable size_t position = 0;     // generators: items taken so far
};

struct DictData {
  Members items;
  int nesting = 1;
  const Value* find(const Value& key) const;
  const Value* find_key(std::string_view key) const;
};

Value make_list(Values items, ListKind kind = ListKind::kList, std::string label = {});
Value make_named_tuple(Values items, std::vector<std::string> names);
Value make_dict(Members items);  // of equal keys the last counts, at the first's place
inline Value make_tuple(Values items) { return make_list(std::move(items), ListKind::kTuple); }

struct Args {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter;

// Namespaces, macros, functions, loops, cyclers: values with identity.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::string repr() const = 0;
  virtual int nesting() const { return 1; }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& interpreter, Args& args);
  // Nothing when there is no such attribute.
  virtual std::optional<Value> attribute(std::string_view name);
};

// Python's semantics.
bool truthy(const Value& v);
bool equal(const Value& a, const Value& b, Budget& budget);
// <0, 0, >0; Fault where Python refuses the comparison. 2: unordered (NaN).
int compare(const Value& a, const Value& b, Budget& budget);
bool contains(const Value& container, const Value& item, Budget& budget);
std::string to_text(const Value& v, Budget& budget);  // str()
std::string repr(const Value& v, Budget& budget);
std::string float_repr(double d);
std::string string_repr(std::string_view s);
// What a for loop would see: list items, dict keys, characters; nothing for undefined. Uses
// generators up.
Values items_of(const Value& v, Budget& budget);
std::vector<std::string_view> characters(std::string_view text);
// len(); Fault for what has none.
size_t length_of(const Value& v);

struct JsonStyle {
  bool pretty = false;
  std::string indent;
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false, ensure_ascii = false;
};
std::string to_json(const Value& v, const JsonStyle& style, Budget& budget);

}  // namespace loongforge::data::jinja
