#include "train/run_folder.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

TEST_CASE("a run that never begins leaves the folder as it was") {
  TempDir dir;
  { train::RunFolder folder(dir / "new"); }
  CHECK(dir.entries() == 0);
  fs::create_directory(dir / "old");
  write_file(dir / "old" / "mine", "x");
  { train::RunFolder folder(dir / "old" / ""); }
  CHECK(fs::exists(dir / "old" / "mine"));
  CHECK_FALSE(fs::exists(dir / "old" / ".lock"));
}

TEST_CASE("one run at a time") {
  TempDir dir;
  train::RunFolder first(dir / "out");
  first.begin(false);
  LF_CHECK_ERROR(train::RunFolder(dir / "out"), ErrorCode::kUsage, "in use by another run");
  CHECK(fs::exists(dir / "out" / ".lock"));
}

TEST_CASE("what a killed run left half written goes, what an earlier run left only when it is asked for") {
  TempDir dir;
  const fs::path out = dir / "out";
  for (const char* name : {".checkpoint-3.tmp-99999999-0", "checkpoint-2", ".checkpoint-1.old-99999999", "runs"}) {
    fs::create_directories(out / name);
    write_file(out / name / "f", "x");
  }
  write_file(out / ".run_config.json.tmp-99999999-0", "half");
  write_file(out / "metrics.jsonl", "");
  write_file(out / "notes.txt", "mine");
  fs::create_directory_symlink("checkpoint-2", out / ".latest.tmp-99999999-0");
  {
    train::RunFolder folder(out);
    CHECK_FALSE(fs::exists(out / ".checkpoint-3.tmp-99999999-0"));
    CHECK_FALSE(fs::exists(out / ".run_config.json.tmp-99999999-0"));
    CHECK_FALSE(fs::exists(fs::symlink_status(out / ".latest.tmp-99999999-0")));
    CHECK(fs::exists(out / "checkpoint-1" / "f"));
    folder.begin(false);
    CHECK(fs::exists(out / "checkpoint-2"));
  }
  train::RunFolder folder(out);
  folder.begin(true);
  CHECK_FALSE(fs::exists(out / "checkpoint-1"));
  CHECK_FALSE(fs::exists(out / "runs"));
  CHECK_FALSE(fs::exists(out / "metrics.jsonl"));
  CHECK(fs::exists(out / "notes.txt"));
}

TEST_CASE("a folder whose checkpoints are all damaged is no folder to start anew in") {
  TempDir dir;
  const fs::path out = dir / "out";
  fs::create_directories(out / "checkpoint-5");
  write_file(out / "checkpoint-5" / "manifest.json", "{");
  train::RunFolder folder(out);
  LF_CHECK_ERROR(folder.resume("true"), ErrorCode::kBadData, "holds no checkpoint that is whole");
  LF_CHECK_ERROR(folder.resume("true"), ErrorCode::kBadData, "--overwrite_output_dir");
  CHECK(fs::exists(out / "checkpoint-5" / "manifest.json"));
}

TEST_CASE("final is relative inside the folder, and names what lies elsewhere") {
  TempDir dir;
  train::RunFolder folder(dir / "out");
  folder.begin(false);
  CHECK_FALSE(folder.resume("").has_value());
  CHECK_FALSE(folder.resume("true").has_value());
  folder.point_final(folder.checkpoint(5));
  CHECK(fs::read_symlink(dir / "out" / "final") == "checkpoint-5");
  folder.point_final(dir / "other" / "checkpoint-4");
  CHECK(fs::read_symlink(dir / "out" / "final") == dir / "other" / "checkpoint-4");
}

TEST_CASE("a copy whose links became folders is refused before the run, not at its first checkpoint") {
  TempDir dir;
  fs::create_directories(dir / "out" / "checkpoint-3");
  fs::create_directory(dir / "out" / "latest");
  {
    train::RunFolder folder(dir / "out");
    LF_CHECK_ERROR(folder.begin(false), ErrorCode::kUsage, "latest is no link to a checkpoint");
  }
  CHECK(fs::is_directory(dir / "out" / "latest"));
  train::RunFolder folder(dir / "out");
  folder.begin(true);  // --overwrite_output_dir
  CHECK_FALSE(fs::exists(dir / "out" / "latest"));
}
