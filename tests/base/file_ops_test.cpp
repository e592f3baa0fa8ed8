#include "base/file_ops.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "support/expect_error.h"
#include "support/file_faults.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A folder of two files, in place of one that is there.
void write_folder(const fs::path& to, const std::string& content) {
  FolderWriter writer(to, true);
  File a = File::create(writer.temporary() / "a");
  a.write(bytes_of(content));
  a.close();
  make_folders(writer.temporary() / "inner");
  write_text_atomic(writer.temporary() / "inner" / "b", content);
  writer.commit();
}

bool whole(const fs::path& folder, const std::string& content) {
  return fs::exists(folder / "a") && read_text(folder / "a") == content &&
         fs::exists(folder / "inner" / "b") && read_text(folder / "inner" / "b") == content;
}

// The folder is the old or the new one, and nothing else is there.
void check_intact(const TempDir& dir, size_t step) {
  CAPTURE(step);
  CHECK((whole(dir / "out", "old") || whole(dir / "out", "new")));
  CHECK(dir.entries() == 1);
}

// A file system that can neither exchange nor rename without replacing: NFS, some FUSE.
class PlainRenames : public FileWatch {
 public:
  explicit PlainRenames(FileWatch* next = nullptr, int failing = 2)
      : next_(next), failing_(failing) {}
  int before(FileStep step, const fs::path& path, size_t& bytes) noexcept override {
    if (next_ != nullptr)
      if (const int error = next_->before(step, path, bytes); error != 0) return error;
    const bool final_name = step == FileStep::kRename && path.filename() == "out";
    return final_name && renames_++ < failing_ ? EINVAL : 0;
  }

 private:
  FileWatch* next_;
  int failing_, renames_ = 0;
};

}  // namespace

TEST_CASE("file steps: a watch sees each one, in order") {
  TempDir dir;
  const auto steps = steps_of([&] { write_text_atomic(dir / "t", "x"); });
  REQUIRE(steps.size() == 6);
  CHECK(steps[0].starts_with("create .t.tmp-"));
  CHECK(steps[1] == "write t");
  CHECK(steps[2] == "sync t");
  CHECK(steps[3] == "close t");
  CHECK(steps[4] == "rename t");
  CHECK(steps[5].starts_with("sync lf-test-"));
  CHECK(steps_of([&] { make_folders(dir / "x" / "y" / ""); }) ==
        std::vector<std::string>{"make folder x", "make folder y"});
  put(dir / "x" / "y" / "f", "1");
  CHECK(steps_of([&] { remove_tree(dir / "x"); }) ==
        std::vector<std::string>{"remove f", "remove y", "remove x"});
  CHECK(steps_of([&] { remove_tree(dir / "x"); }).empty());
}

TEST_CASE("file steps: short writes are finished") {
  TempDir dir;
  class Trickle : public FileWatch {
    int before(FileStep step, const fs::path&, size_t& bytes) noexcept override {
      if (step == FileStep::kWrite) bytes = 1;
      return 0;
    }
  } trickle;
  const Watching watching(trickle);
  write_text_atomic(dir / "t", "one byte at a time");
  CHECK(read_text(dir / "t") == "one byte at a time");
}

TEST_CASE("file steps: errors name path and cause") {
  TempDir dir;
  put(dir / "file", "x");
  LF_CHECK_ERROR(make_folders(dir / "file" / "x"), ErrorCode::kFailed, "file");
  LF_CHECK_ERROR(rename_path(dir / "absent", dir / "y"), ErrorCode::kFailed, "No such file");
  point_link(dir / "link", "file");
  point_link(dir / "link", "other");
  CHECK(fs::read_symlink(dir / "link") == "other");
  LF_CHECK_ERROR(point_link(dir / "file", "other"), ErrorCode::kFailed, "stands where a link");
  CHECK(fs::is_regular_file(dir / "file"));
  remove_tree(dir / "link");
  CHECK(dir.entries() == 1);
  FailAt full(0, ENOSPC, Fault::kFromThere);
  const Watching watching(full);
  LF_CHECK_ERROR(make_folders(dir / "new"), ErrorCode::kFailed, "free space");
  LF_CHECK_ERROR(point_link(dir / "link", "file"), ErrorCode::kFailed, "No space left");
  LF_CHECK_ERROR(File::append(dir / "log"), ErrorCode::kFailed, "No space left");
}

TEST_CASE("folder writer: any step that fails leaves the old folder or the new one, and no rest") {
  TempDir counted;
  write_folder(counted / "out", "old");
  const size_t steps = steps_of([&] { write_folder(counted / "out", "new"); }).size();
  REQUIRE(steps > 12);
  size_t errors = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThere, Fault::kShortWrite}) {
    for (size_t at = 0; at < steps; ++at) {
      const int error = at % 3 == 0 ? ENOSPC : at % 3 == 1 ? EIO : EROFS;
      {
        TempDir dir;
        write_folder(dir / "out", "old");
        FailAt watch(at, error, fault);
        try {
          const Watching watching(watch);
          write_folder(dir / "out", "new");
        } catch (const Error& e) {
          ++errors;
          CHECK(e.code() == ErrorCode::kFailed);
        }
        // What cannot be removed (a read-only disk) goes when it can be.
        recover_folders(dir.path());
        if (dir.entries() != 1) write_folder(dir / "out", "new");
        check_intact(dir, at);
      }
    }
  }
  CHECK(errors > 2 * steps);
}

TEST_CASE(
    "folder writer: killed at any step, the next writer finds the old folder or the new one") {
  for (const bool exchange : {true, false}) {
    TempDir counted;
    write_folder(counted / "out", "old");
    CountSteps count;
    PlainRenames plain_count(&count);
    {
      const Watching watching(exchange ? static_cast<FileWatch&>(count) : plain_count);
      write_folder(counted / "out", "new");
    }
    REQUIRE(whole(counted / "out", "new"));
    REQUIRE(counted.entries() == 1);
    for (size_t at = 0; at < count.steps.size(); ++at) {
      TempDir dir;
      write_folder(dir / "out", "old");
      const pid_t child = fork();
      if (child == 0) {
        StopAt stop(at);
        PlainRenames plain(&stop);
        watch_files(exchange ? static_cast<FileWatch*>(&stop) : &plain);
        write_folder(dir / "out", "new");
        _exit(0);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, WUNTRACED) == child);
      REQUIRE(WIFSTOPPED(status));
      // While it lives its folders are its own.
      const size_t entries = dir.entries();
      recover_folders(dir.path());
      CHECK((dir.entries() == entries || whole(dir / "out", "new")));  // there the old one is going
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      recover_folders(dir.path());
      check_intact(dir, at);
    }
  }
}

TEST_CASE("recovery touches only what writers make") {
  TempDir dir;
  for (const char* name :
       {".hidden", ".out.tmp-", ".out.tmp-x-1", ".tmp-9-9", "out.tmp-1-1", ".a.old-7x"})
    put(dir / name, "mine");
  fs::create_directory(dir / ".b.old-99999999");
  put(dir / ".b.old-99999999" / "f", "kept");
  put(dir / ".t.tmp-99999999-1", "alive");
  const int alive = open((dir / ".t.tmp-99999999-1").c_str(), O_RDONLY);
  REQUIRE(flock(alive, LOCK_EX | LOCK_NB) == 0);
  put(dir / ".t.tmp-99999999-0", "dead");
  recover_folders(dir.path());
  CHECK(read_text(dir / "b" / "f") == "kept");
  CHECK_FALSE(fs::exists(dir / ".t.tmp-99999999-0"));
  CHECK(dir.entries() == 8);
  close(alive);
}

TEST_CASE("what was moved aside comes back on a file system without renameat2 as well") {
  TempDir dir;
  for (const char* name : {".out.old-99999999", ".there.old-99999999", "there"}) {
    fs::create_directory(dir / name);
    put(dir / name / "f", name);
  }
  PlainRenames plain(nullptr, 1);  // the rename that would not replace
  const Watching watching(plain);
  recover_folders(dir.path());
  CHECK(read_text(dir / "out" / "f") == ".out.old-99999999");
  CHECK(read_text(dir / "there" / "f") == "there");
  CHECK(dir.entries() == 2);
}
