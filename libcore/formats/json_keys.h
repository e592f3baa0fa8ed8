// Typed access to the keys of one JSON object of a file: every fault is an Error that names file,
// key and value. A key whose value is null counts as absent. For the .cpp files of formats/ only.
// Thread-safety: a view; the object and `where` must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "support/json.h"
#include "support/printable.h"

namespace loongforge::formats {

// Sizes above this are faults; below it their products do not overflow.
inline constexpr int64_t kMaxSize = int64_t{1} << 31;

inline std::string shown(const support::Json& value) {
  return support::printable(value.dump(), 80);
}

// Typed access to one object of the file. A key whose value is null counts as absent.
class Keys {
 public:
  Keys(const support::Json& object, const std::string& where, std::string prefix = {})
      : object_(object), where_(where), prefix_(std::move(prefix)) {}

  [[noreturn]] void fail(std::string_view key, const std::string& what,
                         std::string hint = {}) const {
    throw_bad_data(where_, prefix_ + std::string(key) + " " + what, std::move(hint));
  }

  const support::Json* find(std::string_view key) const {
    const support::Json* value = object_.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  bool has(std::string_view key) const { return object_.find(key) != nullptr; }  // null as well
  const std::string& where() const { return where_; }

  std::optional<int64_t> integer(std::string_view key) const {
    const support::Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_int()) fail(key, "is " + shown(*value) + ", not an integer");
    return value->as_int();
  }

  std::optional<int64_t> size(std::string_view key) const {  // 1 to kMaxSize
    const std::optional<int64_t> value = integer(key);
    if (value && (*value < 1 || *value > kMaxSize))
      fail(key, "is " + std::to_string(*value) + ", not between 1 and 2^31");
    return value;
  }

  int64_t required_size(std::string_view key) const {
    if (const std::optional<int64_t> value = size(key)) return *value;
    fail(key, "is missing");
  }

  std::optional<double> number(std::string_view key) const {
    const support::Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) fail(key, "is " + shown(*value) + ", not a number");
    return value->as_double();
  }

  std::optional<double> positive(std::string_view key) const {
    const std::optional<double> value = number(key);
    if (value && !(*value > 0)) fail(key, "is " + shown(*find(key)) + ", not above 0");
    return value;
  }

  double required_positive(std::string_view key, const std::string& why) const {
    if (const std::optional<double> value = positive(key)) return *value;
    fail(key, "is missing" + why);
  }

  bool boolean(std::string_view key, bool otherwise) const {
    const support::Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_bool()) fail(key, "is " + shown(*value) + ", not true or false");
    return value->as_bool();
  }

  std::string string(std::string_view key, std::string_view otherwise) const {
    const support::Json* value = find(key);
    if (value == nullptr) return std::string(otherwise);
    if (!value->is_string()) fail(key, "is " + shown(*value) + ", not a string");
    return value->as_string();
  }

  std::vector<std::string> strings(std::string_view key) const {
    std::vector<std::string> out;
    for (const support::Json& item : array(key)) {
      if (!item.is_string()) fail(key, "holds " + shown(item) + ", not a string");
      out.push_back(item.as_string());
    }
    return out;
  }

  std::vector<double> positives(std::string_view key) const {
    std::vector<double> out;
    for (const support::Json& item : array(key)) {
      if (!item.is_number() || !(item.as_double() > 0))
        fail(key, "holds " + shown(item) + ", not a number above 0");
      out.push_back(item.as_double());
    }
    return out;
  }

  // An integer or a list of integers.
  std::vector<int64_t> ids(std::string_view key) const {
    const support::Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_array()) return {*integer(key)};
    std::vector<int64_t> out;
    for (const support::Json& item : value->as_array()) {
      if (!item.is_int()) fail(key, "holds " + shown(item) + ", not an integer");
      out.push_back(item.as_int());
    }
    return out;
  }

  // Two keys that say the same thing must agree.
  template <class T>
  void agree(std::string_view key, const std::optional<T>& a, const std::string& other,
             const std::optional<T>& b) const {
    if (a && b && !(*a == *b)) {
      fail(key,
           "is " + shown(support::Json(*a)) + ", but " + other + " is " + shown(support::Json(*b)),
           "make them equal or remove one");
    }
  }

 private:
  const support::Json::Array& array(std::string_view key) const {
    static const support::Json::Array kNone;
    const support::Json* value = find(key);
    if (value == nullptr) return kNone;
    if (!value->is_array()) fail(key, "is " + shown(*value) + ", not a list");
    return value->as_array();
  }

  const support::Json& object_;
  const std::string& where_;
  std::string prefix_;
};

}  // namespace loongforge::formats
