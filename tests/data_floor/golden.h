// Reading golden files, and small GGUF files made on the fly.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "support/data.h"
#include "support/json.h"

namespace loongforge::test {

inline std::filesystem::path golden(const std::string& name) { return data_dir() / "data" / name; }

inline std::vector<support::Json> read_lines(const std::filesystem::path& path) {
  std::vector<support::Json> lines;
  const std::string text = read_text(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at)
      lines.push_back(
          support::Json::parse(std::string_view(text).substr(at, end - at), path.string()));
    at = end + 1;
  }
  return lines;
}

inline std::vector<int32_t> ids_of(const support::Json& line, const char* key) {
  std::vector<int32_t> ids;
  for (const support::Json& id : line.at(key).as_array())
    ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

// The Error that a call ends in; a call that ends in none fails the test.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  FAIL("no error");
  return Error(ErrorCode::kFailed, "", "");
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lf_data_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// A GGUF file of metadata only.
class GgufBuilder {
 public:
  GgufBuilder& text(const std::string& key, std::string_view value) {
    start(key, 8);
    string(value);
    return *this;
  }
  GgufBuilder& number(const std::string& key, uint32_t value) {
    start(key, 4);
    raw(value);
    return *this;
  }
  GgufBuilder& flag(const std::string& key, bool value) {
    start(key, 7);
    body_ += static_cast<char>(value);
    return *this;
  }
  GgufBuilder& texts(const std::string& key, const std::vector<std::string>& values) {
    start(key, 9);
    raw(uint32_t{8});
    raw(static_cast<uint64_t>(values.size()));
    for (const std::string& value : values) string(value);
    return *this;
  }
  GgufBuilder& numbers(const std::string& key, const std::vector<int32_t>& values) {
    start(key, 9);
    raw(uint32_t{5});
    raw(static_cast<uint64_t>(values.size()));
    for (int32_t value : values) raw(value);
    return *this;
  }
  GgufBuilder& reals(const std::string& key, const std::vector<float>& values) {
    start(key, 9);
    raw(uint32_t{6});
    raw(static_cast<uint64_t>(values.size()));
    for (float value : values) raw(value);
    return *this;
  }
  std::string bytes() const {
    std::string head = "GGUF";
    const uint32_t version = 3;
    const uint64_t tensors = 0;
    head.append(reinterpret_cast<const char*>(&version), 4);
    head.append(reinterpret_cast<const char*>(&tensors), 8);
    head.append(reinterpret_cast<const char*>(&count_), 8);
    head += body_;
    head.append((32 - head.size() % 32) % 32, '\0');
    return head;
  }

 private:
  template <class T>
  void raw(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view value) {
    raw(static_cast<uint64_t>(value.size()));
    body_ += value;
  }
  void start(const std::string& key, uint32_t type) {
    string(key);
    raw(type);
    ++count_;
  }
  std::string body_;
  uint64_t count_ = 0;
};

}  // namespace loongforge::test
