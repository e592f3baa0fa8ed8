#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/paths.h"
#include "base/stop.h"

namespace loongforge {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw_file_error(path, action, error);
}

// "out/", "./out", "a/../out" -> an absolute path with a last part.
fs::path normal_path(const fs::path& path) {
  if (path.empty()) throw_usage("the output path is empty");
  fs::path absolute = absolute_path(path);
  if (!absolute.has_filename())
    throw_usage(path.string() + ": is not a path that a folder can be written to");
  return absolute;
}

// The names of a writer's folders: ".<stem>.tmp-<pid>-<n>" while it is built, ".<stem>.old-<pid>"
// moved aside.
std::string stem_of(const fs::path& final_path) {
  return final_path.filename().string().substr(0, 200);
}

struct LeftOver {
  std::string stem;
  bool moved_aside = false;
  int64_t pid = 0;
};

std::optional<LeftOver> parse_left_over(const std::string& name) {
  for (const char* mark : {".tmp-", ".old-"}) {
    const size_t at = name.rfind(mark);
    if (at == std::string::npos || at < 2 || name[0] != '.') continue;
    LeftOver result{name.substr(1, at - 1), mark[1] == 'o', 0};
    const char *begin = name.data() + at + 5, *end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, result.pid);
    if (error != std::errc() || result.pid <= 0) continue;
    if (result.moved_aside ? rest != end : rest == end || *rest != '-') continue;
    return result;
  }
  return {};
}

// A folder moved aside for its replacement: it comes back where that did not arrive, it may be the
// only copy.
void bring_back(const fs::path& path, const fs::path& final_path) {
  if (file_ops::rename(path, final_path, RENAME_NOREPLACE) == 0) return;
  const bool plain = errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
  std::error_code error;
  if (fs::exists(fs::symlink_status(final_path, error)))
    file_ops::remove_with_content(path);
  else if (plain)
    file_ops::rename(path, final_path);
}

void recover_entry(const fs::path& path, const LeftOver& found, const fs::path& final_path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return;
  if (found.moved_aside && !S_ISDIR(info.st_mode)) return;
  if (S_ISLNK(info.st_mode)) {  // no lock tells of its writer
    if (found.pid != getpid() && kill(static_cast<pid_t>(found.pid), 0) != 0 && errno == ESRCH)
      file_ops::remove_entry(path);
    return;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    if (found.moved_aside)
      bring_back(path, final_path);
    else
      file_ops::remove_with_content(path);
  }
  close(fd);
}

// stem empty: of every final path in the folder.
void recover(const fs::path& folder, const std::string& stem, const fs::path& final_path) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  for (const fs::path& entry : entries) {
    const auto found = parse_left_over(entry.filename().string());
    if (!found || (!stem.empty() && found->stem != stem)) continue;
    recover_entry(entry, *found, stem.empty() ? folder / found->stem : final_path);
  }
}

bool holds_working_directory(const fs::path& folder) {
  std::error_code error;
  fs::path here = fs::current_path(error);
  if (error) return false;
  fs::path real = fs::weakly_canonical(folder, error);
  for (fs::path at = here; !error; at = at.parent_path()) {
    if (at == real) return true;
    if (!at.has_relative_path()) return false;
  }
  return false;
}

void check_target(const fs::path& path, bool overwrite, std::string_view must_contain) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    if (errno == ENOTDIR) throw_usage(path.string() + ": a part of the path is not a folder");
    fail(path, "stat", errno);
  }
  std::string name = path.string();
  if (S_ISLNK(info.st_mode)) throw_usage(name + ": is a symbolic link", "name the folder itself");
  if (!S_ISDIR(info.st_mode)) throw_usage(name + ": exists and is not a folder");
  if (!overwrite) throw_usage(name + ": exists", "choose another path or give --overwrite");
  if (holds_working_directory(path)) {
    throw_usage(name + ": holds the working directory and is not overwritten");
  }
  if (must_contain.empty() || folder_entries(path, ErrorCode::kFailed).empty()) return;
  if (!path_exists(path / fs::path(must_contain), ErrorCode::kFailed)) {
    throw_usage(name + ": has no " + std::string(must_contain) + ", so it is not overwritten",
                "choose another path or remove it yourself");
  }
}

void sync_tree(const fs::path& folder) {
  for (const fs::path& entry : folder_entries(folder, ErrorCode::kFailed)) {
    check_stop();
    if (link_exists(entry, ErrorCode::kFailed)) continue;
    if (folder_exists(entry, ErrorCode::kFailed)) {
      sync_tree(entry);
      continue;
    }
    int fd = open(entry.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) fail(entry, "open", errno);
    int error = file_ops::sync(fd, entry) == 0 ? 0 : errno;
    close(fd);
    if (error != 0) fail(entry, "sync", error);
  }
  sync_folder(folder);
}

bool unsupported(int error) { return error == EINVAL || error == ENOSYS || error == ENOTSUP; }

}  // namespace

FolderWriter::FolderWriter(fs::path final_path, bool overwrite, std::string_view must_contain)
    : overwrite_(overwrite) {
  try {
    final_ = normal_path(final_path);
    recover(final_.parent_path(), stem_of(final_), final_);
    check_target(final_, overwrite_, must_contain);
    make_parents();
    make_temporary();
  } catch (...) {
    discard();
    throw;
  }
}

FolderWriter::~FolderWriter() {
  if (!committed_) discard();
  if (lock_fd_ >= 0) close(lock_fd_);
}

void FolderWriter::discard() noexcept {
  if (!temporary_.empty()) file_ops::remove_with_content(temporary_);
  if (made_parent_.empty()) return;
  // Only what is empty goes, from the innermost outwards.
  for (fs::path at = final_.parent_path();; at = at.parent_path()) {
    if (file_ops::remove_entry(at) != 0 || at == made_parent_) break;
  }
}

void FolderWriter::make_parents() {
  fs::path parent = final_.parent_path();
  fs::path outermost;
  for (fs::path at = parent; !path_exists(at, ErrorCode::kFailed); at = at.parent_path())
    outermost = at;
  if (outermost.empty()) {
    if (!folder_exists(parent, ErrorCode::kFailed))
      throw_usage(parent.string() + ": is not a folder");
    return;
  }
  made_parent_ = outermost;  // before: some may be made when a later one fails
  make_folders(parent);
}

void FolderWriter::make_temporary() {
  for (int attempt = 0;; ++attempt) {
    std::string number = std::to_string(getpid()) + "-" + std::to_string(attempt);
    fs::path folder = final_.parent_path() / ("." + stem_of(final_) + ".tmp-" + number);
    if (file_ops::make_folder(folder) != 0) {
      if (errno != EEXIST || attempt == 1000) fail(final_, "create", errno);
      continue;
    }
    temporary_ = folder;
    // The lock lasts as long as this process; a file system without locks only loses the removal of
    // stale folders.
    lock_fd_ = open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_fd_ >= 0) flock(lock_fd_, LOCK_EX | LOCK_NB);
    return;
  }
}

void FolderWriter::swap_in() {
  if (file_ops::rename(temporary_, final_, RENAME_NOREPLACE) == 0) return;
  int error = errno;
  if (unsupported(error)) {
    struct stat info;
    if (lstat(final_.c_str(), &info) != 0 && errno == ENOENT) {
      if (file_ops::rename(temporary_, final_) == 0) return;
      fail(final_, "rename to", errno);
    }
    error = EEXIST;
  }
  if (error != EEXIST) fail(final_, "rename to", error);
  if (!overwrite_)
    throw_usage(final_.string() + ": exists", "choose another path or give --overwrite");

  if (file_ops::rename(temporary_, final_, RENAME_EXCHANGE) == 0) {
    file_ops::remove_with_content(temporary_);  // the old folder, now under the temporary name
    return;
  }
  if (!unsupported(errno)) fail(final_, "replace", errno);
  replace_aside();
}

// Not a temporary name: were we killed between the two renames, recover() must bring the only copy
// back. The lock says that we live.
void FolderWriter::replace_aside() {
  const int lock = open(final_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX | LOCK_NB);
  struct Unlock {
    int fd;
    ~Unlock() {
      if (fd >= 0) close(fd);
    }
  } unlock{lock};
  const fs::path old =
      final_.parent_path() / ("." + stem_of(final_) + ".old-" + std::to_string(getpid()));
  if (file_ops::rename(final_, old) != 0) fail(final_, "replace", errno);
  if (file_ops::rename(temporary_, final_) != 0) {
    int why = errno;
    if (file_ops::rename(old, final_) != 0) {
      throw_failed(final_.string(), "cannot replace: " + std::generic_category().message(why),
                   "the old folder is " + old.string());
    }
    fail(final_, "replace", why);
  }
  file_ops::remove_with_content(old);
}

void FolderWriter::commit() {
  sync_tree(temporary_);
  check_stop();
  swap_in();
  committed_ = true;
  sync_folder(final_.parent_path());
}

void recover_folders(const fs::path& folder) { recover(folder, {}, {}); }

void recover_left_over(const fs::path& final_path) {
  const fs::path folder = final_path.has_parent_path() ? final_path.parent_path() : fs::path(".");
  recover(folder, stem_of(final_path), final_path);
}

}  // namespace loongforge
