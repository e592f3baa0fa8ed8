#include "base/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"

namespace loongforge {
namespace fs = std::filesystem;
namespace {

std::atomic<FileWatch*> current_watch{nullptr};

// False with errno set: the watch wants the step to fail.
bool allowed(FileStep step, const fs::path& path, size_t* bytes = nullptr) {
  FileWatch* watch = current_watch.load(std::memory_order_acquire);
  if (watch == nullptr) return true;
  size_t none = 0;
  const int error = watch->before(step, path, bytes != nullptr ? *bytes : none);
  if (error != 0) errno = error;
  return error == 0;
}

}  // namespace

FileWatch* watch_files(FileWatch* watch) noexcept {
  return current_watch.exchange(watch, std::memory_order_acq_rel);
}

void throw_file_error(const fs::path& path, const char* action, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) hint = "free space or choose another place";
  if (error == EFBIG) hint = "raise the limit on file sizes (ulimit -f), or choose another place";
  throw_failed(path.string(),
               std::string("cannot ") + action + ": " + std::generic_category().message(error),
               hint);
}

namespace file_ops {

int create(const fs::path& path, int flags, mode_t mode) {
  if (!allowed(FileStep::kCreate, path)) return -1;
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CREAT | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

ssize_t write(int fd, const fs::path& path, std::span<const uint8_t> bytes, int64_t offset) {
  size_t n = bytes.size();
  if (!allowed(FileStep::kWrite, path, &n)) return -1;
  n = std::min(n, bytes.size());
  ssize_t done;
  do {
    done = offset < 0 ? ::write(fd, bytes.data(), n) : pwrite(fd, bytes.data(), n, offset);
  } while (done < 0 && errno == EINTR);
  return done;
}

int sync(int fd, const fs::path& path) {
  if (!allowed(FileStep::kSync, path)) return -1;
  int result;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

int close(int fd, const fs::path& path) {
  const bool fails = !allowed(FileStep::kClose, path);
  const int why = errno;
  // After EINTR Linux has closed the descriptor all the same.
  const int result = ::close(fd) == 0 || errno == EINTR ? 0 : -1;
  if (!fails) return result;
  errno = why;
  return -1;
}

int make_folder(const fs::path& path) {
  return allowed(FileStep::kMakeFolder, path) ? mkdir(path.c_str(), 0777) : -1;
}

int rename(const fs::path& from, const fs::path& to, unsigned flags) {
  if (!allowed(FileStep::kRename, to)) return -1;
  if (flags == 0) return ::rename(from.c_str(), to.c_str());
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
}

int remove_entry(const fs::path& path) {
  return allowed(FileStep::kRemove, path) ? ::remove(path.c_str()) : -1;
}

int remove_with_content(const fs::path& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  if (S_ISDIR(info.st_mode)) {
    std::error_code error;
    std::vector<fs::path> inside;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      inside.push_back(it->path());
    if (error) {
      errno = error.value();
      return -1;
    }
    std::sort(inside.begin(), inside.end());  // the same steps each time
    for (const fs::path& entry : inside)
      if (remove_with_content(entry) != 0) return -1;
  }
  return remove_entry(path) == 0 || errno == ENOENT ? 0 : -1;
}

}  // namespace file_ops

void make_folders(const fs::path& path) {
  if (path.empty() || folder_exists(path, ErrorCode::kFailed)) return;
  if (path.has_parent_path() && path.parent_path() != path) make_folders(path.parent_path());
  if (!path.has_filename()) return;  // "folder/": made by its parent path
  if (file_ops::make_folder(path) != 0 &&
      !(errno == EEXIST && folder_exists(path, ErrorCode::kFailed)))
    throw_file_error(path, "create", errno);
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (file_ops::rename(from, to) != 0) throw_file_error(to, "rename to", errno);
}

void remove_tree(const fs::path& path) {
  if (file_ops::remove_with_content(path) != 0) throw_file_error(path, "remove", errno);
}

void point_link(const fs::path& link, const fs::path& target) {
  struct stat info;
  if (lstat(link.c_str(), &info) == 0 && !S_ISLNK(info.st_mode))
    throw_failed(link.string(), "stands where a link to " + target.string() + " goes",
                 "move it away");
  const fs::path temporary = link.parent_path() / ("." + link.filename().string() + ".tmp-" +
                                                   std::to_string(getpid()) + "-0");
  remove_tree(temporary);
  if (!allowed(FileStep::kLink, link) || symlink(target.c_str(), temporary.c_str()) != 0)
    throw_file_error(link, "create", errno);
  if (file_ops::rename(temporary, link) != 0) {
    const int error = errno;
    file_ops::remove_entry(temporary);
    throw_file_error(link, "rename to", error);
  }
  sync_folder(link.parent_path().empty() ? fs::path(".") : link.parent_path());
}

}  // namespace loongforge
