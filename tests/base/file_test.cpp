#include "base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <vector>

#include "base/error.h"
#include "support/expect_error.h"
#include "support/not_root.h"
#include "support/temp_dir.h"

using namespace loongforge;
namespace fs = std::filesystem;

namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

// Lets no file grow above some bytes while it lives: a write fails as on a full disk (with EFBIG),
// for any user.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit now{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

}  // namespace

TEST_CASE("file: write, read back at any place, sizes") {
  test::TempDir dir;
  File out = File::create(dir / "a");
  out.write(bytes_of("hello "));
  out.write(bytes_of("world"));
  out.write_at(0, bytes_of("J"));
  out.write_at(20, bytes_of("!"));
  CHECK(out.size() == 21);
  out.sync();
  out.close();
  File in = File::open_read(dir / "a");
  CHECK(in.size() == 21);
  CHECK(in.path() == dir / "a");
  std::vector<uint8_t> part(5);
  in.read_at(6, part);
  CHECK(std::string(part.begin(), part.end()) == "world");
  in.read_at(21, {});
  in.drop_cache(0, 21);
  LF_CHECK_ERROR(in.read_at(17, part), ErrorCode::kBadData, "ends early");
  LF_CHECK_ERROR(in.read_at(~uint64_t{0}, part), ErrorCode::kBadData, "out of range");
  File moved = std::move(in);
  CHECK(moved.size() == 21);
}

TEST_CASE("file: what cannot be opened is kNoInput and named") {
  test::TempDir dir;
  LF_CHECK_ERROR(File::open_read(dir / "absent"), ErrorCode::kNoInput,
                 "absent: cannot open: No such file");
  LF_CHECK_ERROR(File::open_read(dir.path()), ErrorCode::kNoInput, "is a folder");
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  LF_CHECK_ERROR(File::open_read(dir / "pipe"), ErrorCode::kNoInput, "not a regular file");
  LF_CHECK_ERROR(MappedFile(dir / "absent"), ErrorCode::kNoInput, "absent");
  LF_CHECK_ERROR(read_text(dir / "absent"), ErrorCode::kNoInput, "absent");
  put(dir / "secret", "x");
  chmod((dir / "secret").c_str(), 0);
  chmod(dir.path().c_str(), 0755);
  test::NotRoot user;
  LF_CHECK_ERROR(File::open_read(dir / "secret"), ErrorCode::kNoInput, "Permission denied");
}

TEST_CASE("file: create never writes through what exists") {
  test::TempDir dir;
  put(dir / "victim", "precious");
  fs::create_symlink(dir / "victim", dir / "link");
  fs::create_symlink(dir / "nowhere", dir / "dangling");
  LF_CHECK_ERROR(File::create(dir / "victim"), ErrorCode::kFailed, "File exists");
  LF_CHECK_ERROR(File::create(dir / "link"), ErrorCode::kFailed, "File exists");
  LF_CHECK_ERROR(File::create(dir / "dangling"), ErrorCode::kFailed, "File exists");
  LF_CHECK_ERROR(File::create(dir / "no" / "folder"), ErrorCode::kFailed, "No such file");
  CHECK(read_text(dir / "victim") == "precious");
  CHECK(!fs::exists(dir / "nowhere"));
}

TEST_CASE("file: mapping") {
  test::TempDir dir;
  std::string text(100000, 'x');
  text[99999] = 'z';
  put(dir / "m", text);
  put(dir / "empty", "");
  MappedFile map(dir / "m");
  REQUIRE(map.bytes().size() == text.size());
  CHECK(map.bytes()[99999] == 'z');
  map.drop(0, text.size());
  map.drop(5000, 20000);
  map.drop(99999, ~size_t{0});
  map.drop(200000, 5);
  CHECK(map.bytes()[0] == 'x');
  CHECK(map.bytes()[99999] == 'z');
  MappedFile moved(std::move(map));
  CHECK(moved.bytes().size() == text.size());
  CHECK(map.bytes().empty());
  CHECK(MappedFile(dir / "empty").bytes().empty());
}

TEST_CASE("file: texts") {
  test::TempDir dir;
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < 300000; ++i) text += static_cast<char>(random());
  write_text_atomic(dir / "t", text);
  CHECK(read_text(dir / "t") == text);
  CHECK(read_text(dir / "t", text.size()) == text);
  LF_CHECK_ERROR(read_text(dir / "t", text.size() - 1), ErrorCode::kBadData,
                 "larger than 299999 bytes");
  write_text_atomic(dir / "t", "short");
  CHECK(read_text(dir / "t") == "short");
  write_text_atomic(dir / "t", "");
  CHECK(read_text(dir / "t").empty());
  CHECK(dir.entries() == 1);
  CHECK(read_text("/proc/self/status").find("VmRSS") != std::string::npos);  // size 0, yet text
  LF_CHECK_ERROR(write_text_atomic(dir / "no" / "t", "x"), ErrorCode::kFailed, "No such file");
}

TEST_CASE("file: a failed write leaves the old text and no temporary file") {
  test::TempDir dir;
  write_text_atomic(dir / "t", "old");
  FileSizeLimit limit(1000);
  LF_CHECK_ERROR(write_text_atomic(dir / "t", std::string(5000, 'n')), ErrorCode::kFailed,
                 "t: cannot write");
  CHECK(read_text(dir / "t") == "old");
  CHECK(dir.entries() == 1);
  File file = File::create(dir / "f");
  LF_CHECK_ERROR(file.write(bytes_of(std::string(5000, 'n'))), ErrorCode::kFailed,
                 "f: cannot write: File too large");
}

TEST_CASE("file: free space of a path that does not exist yet") {
  test::TempDir dir;
  CHECK(free_disk_bytes(dir / "a" / "b" / "c") > 0);
  put(dir / "file", "");
  CHECK(free_disk_bytes(dir / "file" / "b") > 0);
}

TEST_CASE("folder writer: appears complete on commit, parents included") {
  test::TempDir dir;
  {
    FolderWriter writer(dir / "a" / "b" / "out/", false);
    CHECK(writer.final_path() == dir / "a" / "b" / "out");
    CHECK(writer.temporary().parent_path() == dir / "a" / "b");
    fs::create_directory(writer.temporary() / "sub");
    put(writer.temporary() / "sub" / "file", "text");
    CHECK(!fs::exists(writer.final_path()));
    writer.commit();
    CHECK(!fs::exists(writer.temporary()));
  }
  CHECK(read_text(dir / "a" / "b" / "out" / "sub" / "file") == "text");
  mode_t mask = umask(0);
  umask(mask);
  struct stat info;
  REQUIRE(stat((dir / "a" / "b" / "out").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == (0777 & ~mask));
}

TEST_CASE("folder writer: an exception leaves nothing, made parents neither") {
  test::TempDir dir;
  CHECK_THROWS_AS(
      [&] {
        FolderWriter writer(dir / "a" / "b" / "out", false);
        put(writer.temporary() / "file", "text");
        throw_failed("x", "y");
      }(),
      Error);
  CHECK(dir.entries() == 0);
  fs::create_directory(dir / "old");
  CHECK_THROWS_AS(
      [&] {
        FolderWriter writer(dir / "old" / "new" / "out", false);
        throw_failed("x", "y");
      }(),
      Error);
  CHECK(dir.entries() == 1);
  CHECK(fs::is_empty(dir / "old"));
}

TEST_CASE("folder writer: an existing folder is refused, with overwrite swapped") {
  test::TempDir dir;
  fs::create_directory(dir / "out");
  put(dir / "out" / "model.json", "old");
  put(dir / "out" / "extra", "old");
  LF_CHECK_ERROR(FolderWriter(dir / "out", false), ErrorCode::kUsage, "out: exists");
  LF_CHECK_ERROR(FolderWriter(dir / "out", true, "other.json"), ErrorCode::kUsage,
                 "has no other.json");
  {
    FolderWriter writer(dir / "out", true, "model.json");
    put(writer.temporary() / "model.json", "new");
    CHECK(read_text(dir / "out" / "model.json") == "old");
  }
  CHECK(read_text(dir / "out" / "model.json") == "old");
  CHECK(dir.entries() == 1);
  {
    FolderWriter writer(dir / "out", true, "model.json");
    put(writer.temporary() / "model.json", "new");
    writer.commit();
  }
  CHECK(read_text(dir / "out" / "model.json") == "new");
  CHECK(!fs::exists(dir / "out" / "extra"));
  CHECK(dir.entries() == 1);
  fs::create_directory(dir / "empty");
  FolderWriter(dir / "empty", true, "model.json").commit();
}

TEST_CASE("folder writer: a folder made meanwhile is not lost") {
  test::TempDir dir;
  FolderWriter writer(dir / "out", false);
  fs::create_directory(dir / "out");
  LF_CHECK_ERROR(writer.commit(), ErrorCode::kUsage, "exists");
}

TEST_CASE(
    "folder writer: symlinks, files and the working directory are refused even with overwrite") {
  test::TempDir dir;
  fs::create_directory(dir / "real");
  put(dir / "real" / "file", "x");
  fs::create_directory_symlink(dir / "real", dir / "link");
  fs::create_symlink(dir / "nowhere", dir / "dangling");
  put(dir / "plain", "x");
  for (bool overwrite : {false, true}) {
    LF_CHECK_ERROR(FolderWriter(dir / "link", overwrite), ErrorCode::kUsage, "symbolic link");
    LF_CHECK_ERROR(FolderWriter(dir / "link/", overwrite), ErrorCode::kUsage, "symbolic link");
    LF_CHECK_ERROR(FolderWriter(dir / "dangling", overwrite), ErrorCode::kUsage, "symbolic link");
    LF_CHECK_ERROR(FolderWriter(dir / "plain", overwrite), ErrorCode::kUsage, "not a folder");
    LF_CHECK_ERROR(FolderWriter(dir / "plain" / "out", overwrite), ErrorCode::kUsage,
                   "not a folder");
    LF_CHECK_ERROR(FolderWriter("", overwrite), ErrorCode::kUsage, "empty");
    LF_CHECK_ERROR(FolderWriter("/", overwrite), ErrorCode::kUsage, "not a path");
  }
  LF_CHECK_ERROR(FolderWriter(fs::current_path(), true), ErrorCode::kUsage, "working directory");
  LF_CHECK_ERROR(FolderWriter(".", true), ErrorCode::kUsage, "working directory");
  CHECK(read_text(dir / "real" / "file") == "x");
  CHECK(dir.entries() == 4);
}

TEST_CASE("folder writer: a read-only parent is an error and stays as it was") {
  test::TempDir dir;
  chmod(dir.path().c_str(), 0555);
  {
    test::NotRoot user;
    LF_CHECK_ERROR(FolderWriter(dir / "out", false), ErrorCode::kFailed, "Permission denied");
    LF_CHECK_ERROR(FolderWriter(dir / "a" / "out", false), ErrorCode::kFailed, "Permission denied");
  }
  CHECK(dir.entries() == 0);
  chmod(dir.path().c_str(), 0755);
}

TEST_CASE("folder writer: what a killed writer left is removed, a living one's is not") {
  test::TempDir dir;
  fs::create_directory(dir / ".out.tmp-1-0");
  put(dir / ".out.tmp-1-0" / "half", "x");
  fs::create_directory(dir / ".outer.tmp-1-0");
  FolderWriter alive(dir / "out", false);
  CHECK(!fs::exists(dir / ".out.tmp-1-0"));
  CHECK(fs::exists(dir / ".outer.tmp-1-0"));
  FolderWriter second(dir / "out", false);
  CHECK(fs::exists(alive.temporary()));
  CHECK(alive.temporary() != second.temporary());
}

TEST_CASE("folder writer: a full disk ends in an error that says so, and nothing is left") {
  test::TempDir dir;
  fs::create_directory(dir / "disk");
  if (mount("tmpfs", (dir / "disk").c_str(), "tmpfs", 0, "size=256k") != 0) {
    MESSAGE("SKIPPED: a small file system cannot be mounted here");
    return;
  }
  {
    LF_CHECK_ERROR(
        [&] {
          FolderWriter writer(dir / "disk" / "out", false);
          File file = File::create(writer.temporary() / "big");
          std::vector<uint8_t> megabyte(1 << 20);
          file.write(megabyte);
        }(),
        ErrorCode::kFailed, "No space left on device");
  }
  CHECK(fs::is_empty(dir / "disk"));
  umount((dir / "disk").c_str());
}

TEST_CASE("file: what git-lfs left in place of a file is named by every reader") {
  const test::TempDir dir;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 268435456\n";
  put(dir / "model.safetensors", pointer);
  const fs::path path = dir / "model.safetensors";
  LF_CHECK_ERROR(File::open_read(path), ErrorCode::kBadData,
                 "model.safetensors: is a git-lfs pointer, not the file; run git lfs pull");
  LF_CHECK_ERROR(MappedFile(path), ErrorCode::kBadData, "git lfs pull");
  LF_CHECK_ERROR(read_text(path), ErrorCode::kBadData, "git lfs pull");
  // A longer text that only begins so is no pointer, nor is one that is cut.
  put(path, pointer + std::string(1024, 'x'));
  CHECK(read_text(path).size() == pointer.size() + 1024);
  put(path, "version https://git-lfs");
  CHECK(read_text(path) == "version https://git-lfs");
}
