#include "base/error.h"
#include "formats/gguf.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::printable;

const GgufValue* GgufFile::find_meta(std::string_view key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : &entries_[it->second].second;
}

template <class T>
const T* GgufFile::get(std::string_view key, const char* expected) const {
  const GgufValue* found = find_meta(key);
  if (found == nullptr) return nullptr;
  if (const T* value = std::get_if<T>(&found->value)) return value;
  throw_bad_data(path().string() + ": " + printable(key),
                 std::string("is ") + found->type_name() + ", not " + expected);
}

template <class T>
const T& GgufFile::require(std::string_view key, const T* value) const {
  if (value == nullptr) throw_bad_data(path().string(), "lacks the metadata key " + printable(key));
  return *value;
}

std::optional<int64_t> GgufFile::get_int(std::string_view key) const {
  const int64_t* value = get<int64_t>(key, "integer");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> GgufFile::get_double(std::string_view key) const {
  const GgufValue* found = find_meta(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&found->value))
    return static_cast<double>(*integer);
  return *get<double>(key, "float");
}

std::optional<bool> GgufFile::get_bool(std::string_view key) const {
  const bool* value = get<bool>(key, "bool");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const std::string* GgufFile::get_string(std::string_view key) const {
  return get<std::string>(key, "string");
}

const std::vector<std::string>* GgufFile::get_strings(std::string_view key) const {
  return get<std::vector<std::string>>(key, "array of strings");
}

const std::vector<int64_t>* GgufFile::get_ints(std::string_view key) const {
  return get<std::vector<int64_t>>(key, "array of integers");
}

const std::vector<double>* GgufFile::get_doubles(std::string_view key) const {
  return get<std::vector<double>>(key, "array of floats");
}

int64_t GgufFile::require_int(std::string_view key) const {
  return require(key, get<int64_t>(key, "integer"));
}

double GgufFile::require_double(std::string_view key) const {
  const std::optional<double> value = get_double(key);
  return require(key, value ? &*value : nullptr);
}

const std::string& GgufFile::require_string(std::string_view key) const {
  return require(key, get_string(key));
}

}  // namespace loongforge::formats
