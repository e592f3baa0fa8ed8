#include "train/run_folder.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "train/checkpoint_manifest.h"

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

// As much of a checkpoint as tells whose it is.
static void make_checkpoint(const fs::path& folder) {
  fs::create_directories(folder);
  write_file(folder / "trainer_state.json", "{}");
  write_file(folder / "loongforge_state.json", "{}");
  train::write_manifest(folder);
}

TEST_CASE("what a killed run left half written goes") {
  TempDir dir;
  const fs::path out = dir / "out";
  for (const char* name :
       {".checkpoint-3.tmp-99999999-0", "checkpoint-2", ".checkpoint-1.old-99999999"}) {
    fs::create_directories(out / name);
    write_file(out / name / "f", "x");
  }
  write_file(out / ".run_config.json.tmp-99999999-0", "half");
  fs::create_directory_symlink("checkpoint-2", out / ".latest.tmp-99999999-0");
  train::RunFolder folder(out);
  CHECK_FALSE(fs::exists(out / ".checkpoint-3.tmp-99999999-0"));
  CHECK_FALSE(fs::exists(out / ".run_config.json.tmp-99999999-0"));
  CHECK_FALSE(fs::exists(fs::symlink_status(out / ".latest.tmp-99999999-0")));
  CHECK(fs::exists(out / "checkpoint-1" / "f"));
}

TEST_CASE("what an earlier run wrote goes when it is asked for, and nothing else") {
  TempDir dir;
  const fs::path out = dir / "out";
  make_checkpoint(out / "checkpoint-1");
  make_checkpoint(out / "checkpoint-2");
  write_file(out / "checkpoint-2" / "manifest.json", "{");  // damaged: what it was is still known
  fs::create_directory_symlink("checkpoint-2", out / "latest");
  make_checkpoint(out / "checkpoint-2.keep");
  make_checkpoint(out / "checkpoint-best");
  for (const char* name : {"checkpoint-7", "runs", "runs/other"})
    fs::create_directories(out / name);
  for (const char* name :
       {"metrics.jsonl", "trainer_state.json", "runs/events.out.tfevents.1.h.2.0", "notes.txt",
        "checkpoint-7/notes.txt", "runs/other/f", "runs/f", "checkpoint-x"})
    write_file(out / name, "x");
  {
    train::RunFolder folder(out);
    folder.begin(false, 0, 1);
    CHECK(fs::exists(out / "checkpoint-2"));
    CHECK(fs::exists(out / "metrics.jsonl"));
  }
  {
    train::RunFolder folder(out);
    folder.begin(true, 0, 1);
    for (const char* name : {"checkpoint-1", "checkpoint-2", "latest", "metrics.jsonl",
                             "trainer_state.json", "runs/events.out.tfevents.1.h.2.0"})
      CHECK_FALSE_MESSAGE(fs::exists(fs::symlink_status(out / name)), name);
    for (const char* name :
         {"checkpoint-2.keep/manifest.json", "checkpoint-best/manifest.json",
          "checkpoint-7/notes.txt", "runs/other/f", "runs/f", "notes.txt", "checkpoint-x"})
      CHECK_MESSAGE(fs::exists(out / name), name);
  }
  fs::remove_all(out / "runs");
  fs::create_directory(out / "runs");
  write_file(out / "runs" / "events.out.tfevents.1.h.2.0", "x");
  train::RunFolder folder(out);
  folder.begin(true, 0, 1);
  CHECK_FALSE(fs::exists(out / "runs"));
}

TEST_CASE("a file that somebody put into a checkpoint is never lost with it") {
  TempDir dir;
  const fs::path out = dir / "out";
  for (const char* name : {"checkpoint-3", "checkpoint-4", "checkpoint-5"})
    make_checkpoint(out / name);
  write_file(out / "metrics.jsonl", "x");
  const auto refused = [&](bool remove_old, int64_t from, const char* says) {
    train::RunFolder folder(out);
    LF_CHECK_ERROR(folder.begin(remove_old, from, 9), ErrorCode::kUsage, says);
    for (const char* kept :
         {"checkpoint-3/manifest.json", "checkpoint-4/manifest.json", "metrics.jsonl"})
      CHECK(fs::exists(out / kept));
  };
  write_file(out / "checkpoint-4" / "notes.txt", "mine");
  refused(true, 0, "checkpoint-4/notes.txt is not of the run");
  refused(false, 3, "checkpoint-4/notes.txt is not the run's");
  fs::remove(out / "checkpoint-4" / "notes.txt");
  fs::create_directory(out / "checkpoint-5" / "plots");
  refused(true, 0, "checkpoint-5/plots");
  write_file(out / "checkpoint-5" / "manifest.json", "{");
  refused(true, 0, "checkpoint-5/plots");
  {
    train::RunFolder folder(out);
    folder.begin(false, 4, 9);  // damaged: the run goes on from the one before it
  }
  fs::remove_all(out / "checkpoint-5");
  fs::create_directory(out / "checkpoint-8");
  write_file(out / "checkpoint-8" / "notes.txt", "mine");
  refused(true, 0, "checkpoint-8 is no checkpoint of this program");
  refused(false, 4, "checkpoint-8 is no checkpoint of this program");
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

TEST_CASE(
    "a copy whose links became folders is refused before the run, not at its first checkpoint") {
  TempDir dir;
  make_checkpoint(dir / "out" / "checkpoint-3");
  make_checkpoint(dir / "out" / "latest");
  {
    train::RunFolder folder(dir / "out");
    LF_CHECK_ERROR(folder.begin(false), ErrorCode::kUsage, "latest is no link to a checkpoint");
  }
  CHECK(fs::is_directory(dir / "out" / "latest"));
  write_file(dir / "out" / "latest" / "notes.txt", "mine");
  {
    train::RunFolder folder(dir / "out");
    LF_CHECK_ERROR(folder.begin(true), ErrorCode::kUsage, "latest/notes.txt");
  }
  fs::remove(dir / "out" / "latest" / "notes.txt");
  train::RunFolder folder(dir / "out");
  folder.begin(true);  // --overwrite_output_dir
  CHECK_FALSE(fs::exists(dir / "out" / "latest"));
}
