// Files, POSIX only. Every failure is an Error that names the path and errno's text: kNoInput when
// an input cannot be opened, kFailed when writing fails (disk full included).
// Thread-safety: a File may be used with read_at() and write_at() from several threads; the rest
// from one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"

namespace loongforge {

class LF_API File {
 public:
  // A regular file (kNoInput otherwise: a pipe or a device cannot be read at an offset); follows
  // symlinks.
  static File open_read(const std::filesystem::path& path);
  // O_CREAT | O_EXCL: never through a symlink. named: the path that errors name, path itself when
  // empty.
  static File create(const std::filesystem::path& path, const std::filesystem::path& named = {});
  // For writing at the end; made when it is absent.
  static File append(const std::filesystem::path& path);
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const std::filesystem::path& path() const noexcept { return path_; }
  int fd() const noexcept { return fd_; }
  uint64_t size() const;
  // Reads exactly out.size() bytes at offset; kBadData ("ends early") when the file is shorter.
  void read_at(uint64_t offset, std::span<uint8_t> out) const;
  void write(std::span<const uint8_t> bytes);  // appends at the current position
  void write_at(uint64_t offset, std::span<const uint8_t> bytes);
  void sync();
  // Tells the kernel that the range is not needed again (posix_fadvise DONTNEED).
  void drop_cache(uint64_t offset, uint64_t bytes) const noexcept;
  void close();  // reports a late write error; the destructor does not

 private:
  File(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::filesystem::path path_;
};

// Read-only mapping of a whole file. bytes() is empty for an empty file.
class LF_API MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }
  // MADV_DONTNEED + fadvise on the inner whole pages.
  void drop(size_t offset, size_t bytes) const noexcept;

 private:
  int fd_ = -1;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
};

LF_API std::string read_text(const std::filesystem::path& path,
                             uint64_t max_bytes = uint64_t{1} << 30);
// Writes to a sibling temporary file, syncs, renames over path (an AtomicFile).
LF_API void write_text_atomic(const std::filesystem::path& path, std::string_view text);

// A folder that appears under its final name complete or not at all: built as a sibling temporary
// folder (.<name>.tmp-<number>), synced, renamed. Left without commit() (an exception), the
// temporary folder is removed, and the missing parents that were made for it. One that a killed
// process left behind is removed by the next FolderWriter of the same final path, or by
// recover_folders(): a lock on the folder tells whether its writer is alive.
class LF_API FolderWriter {
 public:
  // Throws Error(kUsage) when final_path exists and overwrite is false, when it exists and is no
  // folder (a symlink included), or holds the working directory. With overwrite the swap uses
  // RENAME_EXCHANGE and the old folder is removed after it; on a file system without it the old
  // folder is moved aside for the moment of the rename.
  // must_contain: with overwrite, a folder that is not empty is only replaced when it has an entry
  // of this name ("loongir_model.json"), so that a mistyped path cannot cost a home directory;
  // empty: any folder is.
  FolderWriter(std::filesystem::path final_path, bool overwrite,
               std::string_view must_contain = {});
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;
  const std::filesystem::path& temporary() const noexcept { return temporary_; }  // write here
  const std::filesystem::path& final_path() const noexcept { return final_; }
  void commit();  // syncs every file and the folder, renames, syncs the parent

 private:
  void make_parents();
  void make_temporary();
  void swap_in();
  void replace_aside();
  void discard() noexcept;

  std::filesystem::path final_, temporary_, made_parent_;
  bool overwrite_ = false, committed_ = false;
  int lock_fd_ = -1;
};

// What writers that were killed left in a folder: temporary folders and files whose writer is gone
// are removed, and a folder that was moved aside for its replacement comes back when that did not
// arrive. Only names that this file's writers make are touched.
LF_API void recover_folders(const std::filesystem::path& folder);
// The same for one final path only, a file's or a folder's.
LF_API void recover_left_over(const std::filesystem::path& final_path);

// fsync of a folder, so that the names in it are on the disk.
LF_API void sync_folder(const std::filesystem::path& path);

// Of the nearest existing ancestor.
LF_API uint64_t free_disk_bytes(const std::filesystem::path& path);

}  // namespace loongforge
