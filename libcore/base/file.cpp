#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/paths.h"

namespace loongforge {
namespace {

// Linux moves at most 2 GiB less a page in one call; smaller pieces also keep a signal's wait
// short.
constexpr size_t kMaxTransfer = size_t{1} << 30;

std::string errno_text(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const std::filesystem::path& path, const char* action, int error) {
  throw_file_error(path, action, error);
}

// open(2) again after signals.
int open_retry(const std::filesystem::path& path, int flags) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// What git leaves in place of a large file where git-lfs did not run: a few lines of text. Looked
// for here, so that every reader says so.
bool is_lfs_pointer(int fd, off_t size) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  constexpr off_t kLargest = 1024;  // of any pointer, by its specification
  if (size < static_cast<off_t>(kBegin.size()) || size >= kLargest) return false;
  char begin[kBegin.size()];
  return pread(fd, begin, sizeof begin, 0) == static_cast<ssize_t>(sizeof begin) &&
         std::string_view(begin, sizeof begin) == kBegin;
}

int open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO nobody writes would wait for ever; regular files ignore it.
  int fd = open_retry(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) throw_no_input(path.string(), "cannot open: " + errno_text(errno));
  struct stat info;
  int error = fstat(fd, &info) == 0 ? 0 : errno;
  const bool pointer = error == 0 && S_ISREG(info.st_mode) && is_lfs_pointer(fd, info.st_size);
  if (error == 0 && S_ISREG(info.st_mode) && !pointer) return fd;
  close(fd);
  if (pointer)
    throw_bad_data(path.string(), "is a git-lfs pointer, not the file",
                   "run git lfs pull in its repository");
  if (error != 0) throw_no_input(path.string(), "cannot open: " + errno_text(error));
  throw_no_input(path.string(),
                 S_ISDIR(info.st_mode) ? "is a folder, not a file" : "is not a regular file");
}

void write_all(const std::filesystem::path& path, int fd, std::span<const uint8_t> bytes,
               int64_t offset) {
  while (!bytes.empty()) {
    size_t n = std::min(bytes.size(), kMaxTransfer);
    ssize_t done = file_ops::write(fd, path, bytes.first(n), offset);
    if (done < 0) fail(path, "write", errno);
    if (done == 0) fail(path, "write", EIO);
    bytes = bytes.subspan(static_cast<size_t>(done));
    if (offset >= 0) offset += done;
  }
}

}  // namespace

File File::open_read(const std::filesystem::path& path) { return File(open_regular(path), path); }

File File::create(const std::filesystem::path& path, const std::filesystem::path& named) {
  const std::filesystem::path& shown = named.empty() ? path : named;
  int fd = file_ops::create(path, O_RDWR | O_EXCL, 0666);
  if (fd < 0) fail(shown, "create", errno);
  return File(fd, shown);
}

File File::append(const std::filesystem::path& path) {
  int fd = file_ops::create(path, O_WRONLY | O_APPEND, 0666);
  if (fd < 0) fail(path, "open", errno);
  return File(fd, path);
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t File::size() const {
  struct stat info;
  if (fstat(fd_, &info) != 0) fail(path_, "stat", errno);
  return static_cast<uint64_t>(info.st_size);
}

void File::read_at(uint64_t offset, std::span<uint8_t> out) const {
  constexpr uint64_t kMaxOffset = std::numeric_limits<int64_t>::max();
  if (offset > kMaxOffset || out.size() > kMaxOffset - offset) {
    throw_bad_data(path_.string(), "offset " + std::to_string(offset) + " is out of range");
  }
  uint64_t at = offset;
  while (!out.empty()) {
    size_t n = std::min(out.size(), kMaxTransfer);
    ssize_t done = pread(fd_, out.data(), n, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_failed(path_.string(), "cannot read: " + errno_text(errno));
    if (done == 0) {
      throw_bad_data(path_.string(),
                     "ends early: " + std::to_string(out.size()) + " bytes are missing at offset " +
                         std::to_string(at),
                     "the file is truncated; fetch it again");
    }
    out = out.subspan(static_cast<size_t>(done));
    at += static_cast<uint64_t>(done);
  }
}

void File::write(std::span<const uint8_t> bytes) { write_all(path_, fd_, bytes, -1); }

void File::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  constexpr uint64_t kMaxOffset = std::numeric_limits<int64_t>::max();
  if (offset > kMaxOffset || bytes.size() > kMaxOffset - offset) fail(path_, "write", EFBIG);
  write_all(path_, fd_, bytes, static_cast<int64_t>(offset));
}

void File::sync() {
  if (file_ops::sync(fd_, path_) != 0) fail(path_, "sync", errno);
}

void File::drop_cache(uint64_t offset, uint64_t bytes) const noexcept {
  posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

void File::close() {
  int fd = std::exchange(fd_, -1);
  if (fd >= 0 && file_ops::close(fd, path_) != 0) fail(path_, "close", errno);
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  File file = File::open_read(path);
  uint64_t size = file.size();
  if (size > std::numeric_limits<size_t>::max()) fail(path, "map", EFBIG);
  if (size != 0) {
    void* p = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (p == MAP_FAILED) fail(path, "map", errno);
    data_ = static_cast<const uint8_t*>(p);
    size_ = static_cast<size_t>(size);
  }
  fd_ = fcntl(file.fd(), F_DUPFD_CLOEXEC, 0);  // only advice needs it: -1 is no fault
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
  if (fd_ >= 0) close(fd_);
}

void MappedFile::drop(size_t offset, size_t bytes) const noexcept {
  if (offset >= size_) return;
  bytes = std::min(bytes, size_ - offset);
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t begin = (offset + page - 1) / page * page;
  // The last page of the file ends with it.
  size_t end = offset + bytes == size_ ? size_ : (offset + bytes) / page * page;
  if (begin >= end) return;
  madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
  if (fd_ >= 0) {
    posix_fadvise(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                  POSIX_FADV_DONTNEED);
  }
}

std::string read_text(const std::filesystem::path& path, uint64_t max_bytes) {
  File file = File::open_read(path);
  std::string text;
  // The size is a guess only: files under /proc say 0.
  text.reserve(static_cast<size_t>(std::min(file.size(), max_bytes)) + 1);
  constexpr size_t kStep = size_t{1} << 16;
  for (;;) {
    size_t have = text.size();
    text.resize(std::max(text.capacity(), have + kStep));
    ssize_t done = ::read(file.fd(), text.data() + have, text.size() - have);
    if (done < 0 && errno != EINTR)
      throw_failed(path.string(), "cannot read: " + errno_text(errno));
    text.resize(have + static_cast<size_t>(std::max<ssize_t>(done, 0)));
    if (done == 0) return text;
    if (text.size() > max_bytes) {
      throw_bad_data(path.string(), "is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

void sync_folder(const std::filesystem::path& path) {
  int fd = open_retry(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) fail(path, "open", errno);
  // EINVAL, ENOSYS: a file system where a folder needs no sync of its own.
  int error = file_ops::sync(fd, path) == 0 || errno == EINVAL || errno == ENOSYS ? 0 : errno;
  close(fd);
  if (error != 0) fail(path, "sync", error);
}

uint64_t free_disk_bytes(const std::filesystem::path& path) {
  std::filesystem::path at = absolute_path(path);
  struct statvfs info;
  while (statvfs(at.c_str(), &info) != 0) {
    if (errno == EINTR) continue;
    if ((errno != ENOENT && errno != ENOTDIR) || !at.has_relative_path()) fail(at, "stat", errno);
    at = at.parent_path();
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace loongforge
