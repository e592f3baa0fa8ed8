// The steps by which libcore changes the file system: every file made, written, synced, renamed or
// removed goes through here, so that tests can count the steps of a save and fail or stop at each
// one (FileWatch). Without a watch a step costs one load of a pointer besides its system call.
// Thread-safety: the functions from any thread; a watch is called from whichever thread makes the
// step.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/api.h"

namespace loongforge {

enum class FileStep : uint8_t {
  kCreate,
  kWrite,
  kSync,
  kClose,
  kMakeFolder,
  kLink,
  kRename,
  kRemove
};

class FileWatch {
 public:
  virtual ~FileWatch() = default;
  // Before the step is made: 0 lets it happen, an errno makes it fail with that. bytes: what a
  // write is about to write; made smaller (not 0) it becomes a short write.
  virtual int before(FileStep step, const std::filesystem::path& path, size_t& bytes) noexcept = 0;
};
// Returns the watch that stood before. Null: none.
LF_API FileWatch* watch_files(FileWatch* watch) noexcept;

// Changes of names, for all of libcore. Errors are Error(kFailed) with path and errno's text.
LF_API void make_folders(
    const std::filesystem::path& path);  // parents as well; those there are fine
LF_API void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
// A file or a folder with all in it; what is absent is no error. Follows no link.
LF_API void remove_tree(const std::filesystem::path& path);
// A symbolic link that appears at once, in place of one that was there, and is synced. Anything
// else that was there stays, which is an error.
LF_API void point_link(const std::filesystem::path& link, const std::filesystem::path& target);

// For base/ itself: as the system calls, again after signals, 0 (or what open, write return) or -1
// with errno.
namespace file_ops {
int create(const std::filesystem::path& path, int flags, mode_t mode);
// offset < 0: at the descriptor's position.
ssize_t write(int fd, const std::filesystem::path& path, std::span<const uint8_t> bytes,
              int64_t offset);
int sync(int fd, const std::filesystem::path& path);
int close(int fd, const std::filesystem::path& path);
int make_folder(const std::filesystem::path& path);
int rename(const std::filesystem::path& from, const std::filesystem::path& to, unsigned flags = 0);
int remove_entry(const std::filesystem::path& path);  // a file, a link or an empty folder
int remove_with_content(const std::filesystem::path& path);
}  // namespace file_ops

// The error of a change: names the path, says what to do about a full disk.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, const char* action,
                                   int error);

}  // namespace loongforge
