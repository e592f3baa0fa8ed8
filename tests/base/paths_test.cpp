#include "base/paths.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/expect_error.h"
#include "support/not_root.h"
#include "support/temp_dir.h"

using namespace loongforge;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

// The working directory while it lives.
class Inside {
 public:
  explicit Inside(const fs::path& folder) : old_(fs::current_path()) { fs::current_path(folder); }
  ~Inside() { fs::current_path(old_); }

 private:
  fs::path old_;
};

}  // namespace

TEST_CASE("paths: what is there, links followed or not") {
  const test::TempDir dir;
  put(dir / "file", "12345");
  fs::create_directory(dir / "folder");
  fs::create_symlink("file", dir / "to-file");
  fs::create_symlink("nowhere", dir / "dangling");
  CHECK(path_exists(dir / "file"));
  CHECK(file_exists(dir / "file"));
  CHECK_FALSE(folder_exists(dir / "file"));
  CHECK(folder_exists(dir / "folder"));
  CHECK_FALSE(file_exists(dir / "folder"));
  CHECK(file_exists(dir / "to-file"));
  CHECK(link_exists(dir / "to-file"));
  CHECK_FALSE(path_exists(dir / "dangling"));
  CHECK(entry_exists(dir / "dangling"));
  CHECK_FALSE(path_exists(dir / "absent" / "deeper"));
  CHECK_FALSE(path_exists(dir / "file" / "below"));
  CHECK(file_bytes(dir / "to-file") == 5);
  CHECK(folder_entries(dir.path()) ==
        std::vector<fs::path>{dir / "dangling", dir / "file", dir / "folder", dir / "to-file"});
}

TEST_CASE("paths: what keeps us from telling is an error that names the path") {
  const test::TempDir dir;
  fs::create_symlink("loop", dir / "loop");
  const std::string loop = (dir / "loop").string() + ": cannot look at: ";
  LF_CHECK_ERROR(path_exists(dir / "loop"), ErrorCode::kNoInput, loop.c_str());
  LF_CHECK_ERROR(folder_exists(dir / "loop", ErrorCode::kFailed), ErrorCode::kFailed, loop.c_str());
  const fs::path longer = dir / std::string(300, 'n');
  LF_CHECK_ERROR(path_exists(longer), ErrorCode::kNoInput, "File name too long");
  LF_CHECK_ERROR(is_inside(longer, dir / "other"), ErrorCode::kFailed, "File name too long");
  LF_CHECK_ERROR(folder_entries(dir / "absent"), ErrorCode::kNoInput,
                 "absent: cannot list: No such");
  LF_CHECK_ERROR(file_bytes(dir / "absent"), ErrorCode::kNoInput,
                 "absent: cannot look at: No such");
  fs::create_directory(dir / "closed");
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(chmod((dir / "closed").c_str(), 0) == 0);
  {
    const test::NotRoot nobody;
    const std::string says =
        (dir / "closed" / "x").string() + ": cannot look at: Permission denied";
    LF_CHECK_ERROR(file_exists(dir / "closed" / "x"), ErrorCode::kNoInput, says.c_str());
    LF_CHECK_ERROR(folder_entries(dir / "closed"), ErrorCode::kNoInput, "Permission denied");
    LF_CHECK_ERROR(is_inside(dir / "closed" / "x", dir / "a"), ErrorCode::kFailed,
                   "Permission denied");
  }
  chmod((dir / "closed").c_str(), 0755);
}

TEST_CASE("paths: absolute and inside") {
  const test::TempDir dir;
  fs::create_directories(dir / "in" / "sub");
  fs::create_symlink(dir / "in", dir / "link");
  CHECK(absolute_path(dir / "in" / ".." / "in" / "") == dir / "in");
  CHECK(absolute_path("/") == "/");
  CHECK(is_inside(dir / "in", dir / "in" / ""));
  CHECK(is_inside(dir / "in" / "new" / "newer", dir / "in"));
  CHECK(is_inside(dir / "link" / "x", dir / "in"));
  CHECK(is_inside(dir / "in", "/"));
  CHECK_FALSE(is_inside(dir / "inner", dir / "in"));
  CHECK_FALSE(is_inside(dir / "in", dir / "in" / "sub"));
  const Inside gone(dir / "in" / "sub");
  fs::remove(dir / "in" / "sub");
  LF_CHECK_ERROR(absolute_path("x"), ErrorCode::kFailed,
                 "x: cannot be found: the working directory is gone");
}

TEST_CASE("paths: hints for names that no path has") {
  const test::TempDir dir;
  const Inside here(dir.path());
  CHECK(absent_hint("~/model").find("$HOME") != std::string::npos);
  CHECK(absent_hint("Qwen/Qwen3-0.6B").find("nothing is downloaded") != std::string::npos);
  for (const char* path : {"model", "./a/b", "../a", "/a/b", "a/b/c", "a/", "a/../b", "", "a b/c"})
    CHECK_MESSAGE(absent_hint(path).empty(), path);
  fs::create_directory(dir / "mine");  // a folder that is there: a slip in what follows
  CHECK(absent_hint("mine/model").empty());
  LF_CHECK_ERROR(throw_absent("a/b"), ErrorCode::kNoInput, "a/b: does not exist; nothing is down");
  LF_CHECK_ERROR(throw_absent("x", "is no folder", "what then"), ErrorCode::kNoInput,
                 "x: is no folder; what then");
}

TEST_CASE("paths: the root of a hub's cache") {
  const test::TempDir dir;
  const fs::path root = dir / "models--org--name";
  fs::create_directories(root / "snapshots");
  CHECK(hub_cache_hint(root).empty());
  fs::create_directories(root / "snapshots" / "aaaa");
  fs::create_directories(root / "snapshots" / "bbbb");
  CHECK(hub_cache_hint(root).ends_with("/snapshots/bbbb"));
  fs::create_directory(root / "refs");
  put(root / "refs" / "main", "aaaa\n");
  CHECK(hub_cache_hint(root).ends_with("name " + (root / "snapshots" / "aaaa").string()));
  put(root / "refs" / "main", "../../elsewhere");
  CHECK(hub_cache_hint(root).ends_with("/snapshots/bbbb"));
  CHECK(hub_cache_hint(dir.path()).empty());
}
