#include "convert/paths.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "convert/export.h"

namespace loongforge::convert {
namespace {

namespace fs = std::filesystem;

// True when inner is outer or stands below it. Both exist or not; symbolic links are resolved.
bool is_inside(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  fs::path a = fs::weakly_canonical(inner, error), b = fs::weakly_canonical(outer, error);
  if (!a.has_filename()) a = a.parent_path();
  if (!b.has_filename()) b = b.parent_path();
  const auto [in_b, in_a] = std::mismatch(b.begin(), b.end(), a.begin(), a.end());
  (void)in_a;
  return in_b == b.end();
}

}  // namespace

fs::path folder_with(const fs::path& path, std::string_view name, std::string_view what) {
  if (fs::exists(path / name)) return path;
  if (!fs::exists(path)) throw_no_input(path.string(), "does not exist");
  std::vector<fs::path> found;
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (!entry.is_symlink() && entry.is_directory() && fs::exists(entry.path() / name))
        found.push_back(entry.path());
    }
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    const bool adapter = fs::exists(path / "adapter_config.json");
    throw_no_input(path.string(), "holds no " + std::string(what) + " (" + std::string(name) + ")",
                   adapter ? "it is an adapter: name the model it belongs to as --input-path with "
                             "--adapter " + path.string() + " --merge, or use --export peft"
                           : "");
  }
  // A run's folder: its newest checkpoint is what is meant most often.
  const fs::path latest = path / "latest";
  std::sort(found.begin(), found.end());
  throw_no_input(path.string(), "holds more than one " + std::string(what),
                 "name one of them, for instance " +
                     (fs::exists(latest / name) ? latest : found.back()).string());
}

void guard_output(const fs::path& output, std::span<const fs::path> inputs, bool overwrite,
                  std::span<const std::string_view> markers) {
  if (output.empty()) throw_usage("the output path is empty");
  for (const fs::path& input : inputs) {
    if (input.empty()) continue;
    if (is_inside(input, output)) {
      throw_usage("the output " + output.string() + " is or contains the input " + input.string(),
                  "give another output path");
    }
  }
  if (!fs::exists(fs::symlink_status(output))) return;
  if (fs::is_symlink(output))
    throw_usage(output.string() + " is a symbolic link", "name the folder itself");
  if (!overwrite)
    throw_usage(output.string() + " exists",
                "give another output path, or --overwrite to replace it");
  if (!fs::is_directory(output))
    throw_usage(output.string() + " is no folder", "give another output path");
  if (fs::is_empty(output)) return;
  for (std::string_view marker : markers) {
    if (fs::exists(output / marker)) return;
  }
  throw_usage(output.string() + " is no earlier output of this command, so it is not replaced",
              "remove it yourself, or give another output path");
}

uint64_t bytes_beside_weights(const fs::path& model) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(model))
    if (file.is_regular_file() && file.path().extension() != ".lir") bytes += file.file_size();
  return bytes;
}

void guard_space(const fs::path& output, uint64_t bytes) {
  const uint64_t room = free_disk_bytes(output);
  if (room >= bytes) return;
  throw_failed(output.string(),
               "needs " + std::to_string(bytes / 1000000 + 1) + " MB, the disk has " +
                   std::to_string(room / 1000000) + " MB free",
               "free some space, or give an output path on another disk");
}

void write_file_of(const FolderWriter& folder, const data::TokenizerFile& file) {
  const fs::path path = folder.temporary() / file.name;
  make_folders(path.parent_path());
  write_text_atomic(path, file.content);
}

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t parse_byte_size(std::string_view text, std::string_view flag) {
  const auto fail = [&]() -> uint64_t {
    throw_usage(std::string(flag) + " \"" + std::string(text) + "\" is no size",
                "write it as 5GB, 500MB, 2GiB or a number of bytes");
  };
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number > 0)) return fail();
  std::string unit(rest, end);
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"B", 1},
                                    {"KB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"TB", 1e12},
                                    {"KIB", 1024},
                                    {"MIB", 1048576.0},
                                    {"GIB", 1073741824.0},
                                    {"TIB", 1099511627776.0}};
  for (const Unit& each : kUnits) {
    if (unit != each.name) continue;
    const double bytes = std::floor(number * each.bytes);
    if (!(bytes >= 1 && bytes < 0x1p62)) return fail();
    return static_cast<uint64_t>(bytes);
  }
  return fail();
}

}  // namespace loongforge::convert
