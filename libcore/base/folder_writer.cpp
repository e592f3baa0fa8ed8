#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace loongforge {
namespace fs = std::filesystem;
namespace {

std::string errno_text(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const fs::path& path, const std::string& action, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) hint = "free space or choose another place";
  throw_failed(path.string(), "cannot " + action + ": " + errno_text(error), hint);
}

// "out/", "./out", "a/../out" -> an absolute path with a last part.
fs::path normal_path(const fs::path& path) {
  if (path.empty()) throw_usage("the output path is empty");
  fs::path absolute = fs::absolute(path).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  if (!absolute.has_filename())
    throw_usage(path.string() + ": is not a path that a folder can be written to");
  return absolute;
}

// Names that start so are temporary folders of this final path.
std::string temporary_prefix(const fs::path& final_path) {
  return "." + final_path.filename().string().substr(0, 200) + ".tmp-";
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
  if (must_contain.empty() || fs::is_empty(path)) return;
  if (!fs::exists(path / fs::path(must_contain))) {
    throw_usage(name + ": has no " + std::string(must_contain) + ", so it is not overwritten",
                "choose another path or remove it yourself");
  }
}

void sync_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_directory()) {
      sync_tree(entry.path());
      continue;
    }
    int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) fail(entry.path(), "open", errno);
    int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error != 0) fail(entry.path(), "sync", error);
  }
  sync_folder(folder);
}

bool unsupported(int error) { return error == EINVAL || error == ENOSYS || error == ENOTSUP; }

}  // namespace

FolderWriter::FolderWriter(fs::path final_path, bool overwrite, std::string_view must_contain)
    : overwrite_(overwrite) {
  try {
    final_ = normal_path(final_path);
    check_target(final_, overwrite_, must_contain);
    make_parents();
    remove_stale();
    make_temporary();
  } catch (const fs::filesystem_error& error) {
    discard();
    throw_failed(final_.string(), "cannot prepare: " + error.code().message());
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
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  if (made_parent_.empty()) return;
  // Only what is empty goes, from the innermost outwards.
  for (fs::path at = final_.parent_path();; at = at.parent_path()) {
    if (rmdir(at.c_str()) != 0 || at == made_parent_) break;
  }
}

void FolderWriter::make_parents() {
  fs::path parent = final_.parent_path();
  fs::path outermost;
  for (fs::path at = parent; !fs::exists(at); at = at.parent_path()) outermost = at;
  if (outermost.empty()) {
    if (!fs::is_directory(parent)) throw_usage(parent.string() + ": is not a folder");
    return;
  }
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) fail(parent, "create", error.value());
  made_parent_ = outermost;
}

void FolderWriter::make_temporary() {
  for (int attempt = 0;; ++attempt) {
    std::string number = std::to_string(getpid()) + "-" + std::to_string(attempt);
    fs::path folder = final_.parent_path() / (temporary_prefix(final_) + number);
    if (mkdir(folder.c_str(), 0777) != 0) {
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

void FolderWriter::remove_stale() const {
  std::string prefix = temporary_prefix(final_);
  for (const fs::directory_entry& entry : fs::directory_iterator(final_.parent_path())) {
    if (entry.path().filename().string().compare(0, prefix.size(), prefix) != 0) continue;
    int fd = open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
    close(fd);
  }
}

void FolderWriter::swap_in() {
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_NOREPLACE) == 0)
    return;
  int error = errno;
  if (unsupported(error)) {
    struct stat info;
    if (lstat(final_.c_str(), &info) != 0 && errno == ENOENT) {
      if (rename(temporary_.c_str(), final_.c_str()) == 0) return;
      fail(final_, "rename to", errno);
    }
    error = EEXIST;
  }
  if (error != EEXIST) fail(final_, "rename to", error);
  if (!overwrite_)
    throw_usage(final_.string() + ": exists", "choose another path or give --overwrite");

  std::error_code ignored;
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(temporary_, ignored);  // the old folder, now under the temporary name
    return;
  }
  if (!unsupported(errno)) fail(final_, "replace", errno);
  // Not a temporary name: were we killed here, remove_stale() must not take the only copy.
  fs::path old = final_.parent_path() / ("." + final_.filename().string().substr(0, 200) + ".old-" +
                                         std::to_string(getpid()));
  if (rename(final_.c_str(), old.c_str()) != 0) fail(final_, "replace", errno);
  if (rename(temporary_.c_str(), final_.c_str()) != 0) {
    int why = errno;
    if (rename(old.c_str(), final_.c_str()) != 0) {
      throw_failed(final_.string(), "cannot replace: " + errno_text(why),
                   "the old folder is " + old.string());
    }
    fail(final_, "replace", why);
  }
  fs::remove_all(old, ignored);
}

void FolderWriter::commit() {
  try {
    sync_tree(temporary_);
  } catch (const fs::filesystem_error& error) {
    throw_failed(final_.string(), "cannot sync: " + error.code().message());
  }
  swap_in();
  committed_ = true;
  sync_folder(final_.parent_path());
}

}  // namespace loongforge
