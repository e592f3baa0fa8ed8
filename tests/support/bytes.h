// Building and reading whole files in tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace loongforge::test {

// Appends the little-endian bytes of a number.
template <class T>
void append_number(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(
      path);  // file systems may sync a file that is cut to nothing and written anew
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A safetensors file of this header and data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string out;
  append_number(out, static_cast<uint64_t>(header.size()));
  return out.append(header).append(data);
}

}  // namespace loongforge::test
