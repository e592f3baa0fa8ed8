#include "base/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace loongforge {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* action, int error, ErrorCode code) {
  throw Error(code, path.string(),
              std::string("cannot ") + action + ": " + std::generic_category().message(error));
}

// 0: absent.
mode_t mode_of(const fs::path& path, bool follow, ErrorCode code) {
  struct stat info;
  const int result = follow ? stat(path.c_str(), &info) : lstat(path.c_str(), &info);
  if (result == 0) return info.st_mode;
  if (errno == ENOENT || errno == ENOTDIR) return 0;
  fail(path, "look at", errno, code);
}

bool is_name(const std::string& word) {
  return !word.empty() && word != "." && word != ".." &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

bool path_exists(const fs::path& path, ErrorCode code) { return mode_of(path, true, code) != 0; }

bool folder_exists(const fs::path& path, ErrorCode code) {
  return S_ISDIR(mode_of(path, true, code));
}

bool file_exists(const fs::path& path, ErrorCode code) {
  return S_ISREG(mode_of(path, true, code));
}

bool entry_exists(const fs::path& path, ErrorCode code) { return mode_of(path, false, code) != 0; }

bool link_exists(const fs::path& path, ErrorCode code) {
  return S_ISLNK(mode_of(path, false, code));
}

uint64_t file_bytes(const fs::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) fail(path, "look at", errno, ErrorCode::kNoInput);
  return static_cast<uint64_t>(info.st_size);
}

std::vector<fs::path> folder_entries(const fs::path& folder, ErrorCode code) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error) fail(folder, "list", error.value(), code);
  std::sort(entries.begin(), entries.end());
  return entries;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (error)
    throw_failed(path.string(),
                 "cannot be found: the working directory is gone (" + error.message() + ")",
                 "change to a folder that is there, or give a path from /");
  absolute = absolute.lexically_normal();
  return absolute.has_filename() || !absolute.has_relative_path() ? absolute
                                                                  : absolute.parent_path();
}

bool is_inside(const fs::path& inner, const fs::path& outer, ErrorCode code) {
  const auto real = [code](const fs::path& path) {
    std::error_code error;
    fs::path found = fs::weakly_canonical(absolute_path(path), error);
    if (error) fail(path, "look at", error.value(), code);
    return found;
  };
  const fs::path a = real(inner), b = real(outer);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

std::string absent_hint(const std::string& path) {
  if (path.starts_with("~"))
    return "a shell replaces ~ at the start of a word only: write $HOME, or a space before it";
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return {};
  const std::string organisation = path.substr(0, slash);
  struct stat info;
  if (!is_name(organisation) || !is_name(path.substr(slash + 1)) ||
      stat(organisation.c_str(), &info) == 0)
    return {};
  return "nothing is downloaded: fetch it first, then give the path it was saved under";
}

void throw_absent(const std::string& path, std::string what, std::string otherwise) {
  std::string hint = absent_hint(path);
  throw_no_input(path, std::move(what), hint.empty() ? std::move(otherwise) : std::move(hint));
}

void refuse_tilde(const std::string& what, const fs::path& output) {
  if (output.empty() || *output.begin() != "~" || folder_exists("~", ErrorCode::kFailed)) return;
  throw_usage(what + " " + output.string() + " starts with a ~ that no shell replaced",
              "write $HOME, or leave the quotes out");
}

std::string hub_cache_hint(const fs::path& folder) {
  const fs::path snapshots = folder / "snapshots";
  if (!folder_exists(snapshots)) return {};
  const std::vector<fs::path> found = folder_entries(snapshots);
  if (found.empty()) return {};
  fs::path named = found.back();
  if (const fs::path main = folder / "refs" / "main"; file_exists(main)) {
    std::string hash = read_text(main, 1000);
    while (!hash.empty() && (hash.back() == '\n' || hash.back() == '\r')) hash.pop_back();
    if (is_name(hash) && folder_exists(snapshots / hash)) named = snapshots / hash;
  }
  return "it is the root of a hub's cache: name " + named.string();
}

}  // namespace loongforge
