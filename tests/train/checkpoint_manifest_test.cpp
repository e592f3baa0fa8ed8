#include "train/checkpoint_manifest.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "train/checkpoint_rig.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;
using support::Json;

namespace {

std::vector<std::string> g_lines;
void collect(LogLevel, std::string_view text) { g_lines.emplace_back(text); }

struct Lie {
  const char* name;
  void (*tell)(const fs::path& folder);
  ErrorCode code;
  const char* says;
};

void edit_manifest(const fs::path& folder, void (*edit)(Json& manifest)) {
  Json manifest = support::read_json((folder / "manifest.json").string());
  edit(manifest);
  write_text_atomic(folder / "manifest.json", manifest.dump(2));
}

Json& file_of(Json& manifest, size_t i) { return manifest.find("files")->as_array()[i]; }

const Lie kLies[] = {
    {"size",
     [](const fs::path& f) { edit_manifest(f, [](Json& m) { file_of(m, 1).set("bytes", 12); }); },
     ErrorCode::kBadData, "the manifest says 12"},
    {"checksum",
     [](const fs::path& f) { edit_manifest(f, [](Json& m) { file_of(m, 1).set("crc32c", 12); }); },
     ErrorCode::kBadData, "adapter_model.safetensors: does not match its checksum"},
    {"a changed byte", [](const fs::path& f) { flip_byte(f / "optimizer.safetensors", 5000); },
     ErrorCode::kBadData, "optimizer.safetensors: does not match its checksum"},
    {"a cut file", [](const fs::path& f) { fs::resize_file(f / "adapter_model.safetensors", 100); },
     ErrorCode::kBadData, "adapter_model.safetensors: has 100 bytes"},
    {"a format of the wrong type",
     [](const fs::path& f) { edit_manifest(f, [](Json& m) { m.set("format", "1"); }); },
     ErrorCode::kBadData, "manifest.json: format is string"},
    {"a file that is not there", [](const fs::path& f) { fs::remove(f / "optimizer.safetensors"); },
     ErrorCode::kBadData, "optimizer.safetensors: is missing"},
    {"a file that is not listed",
     [](const fs::path& f) {
       edit_manifest(f, [](Json& m) {
         auto& files = m.find("files")->as_array();
         std::erase_if(files, [](const Json& file) {
           return file.get_string("name", "") == "optimizer.safetensors";
         });
       });
     },
     ErrorCode::kBadData, "does not list optimizer.safetensors"},
    {"nothing listed",
     [](const fs::path& f) { edit_manifest(f, [](Json& m) { m.set("files", Json::array()); }); },
     ErrorCode::kBadData, "does not list"},
    {"a name twice",
     [](const fs::path& f) {
       edit_manifest(f, [](Json& m) { m.find("files")->push_back(Json(file_of(m, 0))); });
     },
     ErrorCode::kBadData, "twice"},
    {"a name outside",
     [](const fs::path& f) {
       edit_manifest(f, [](Json& m) { file_of(m, 0).set("name", "../../../etc/passwd"); });
     },
     ErrorCode::kBadData, "outside the checkpoint"},
    {"another version",
     [](const fs::path& f) { edit_manifest(f, [](Json& m) { m.set("format", 3); }); },
     ErrorCode::kBadData, "is of format 3, this version reads 2"},
    {"no version", [](const fs::path& f) { edit_manifest(f, [](Json& m) { m.erase("format"); }); },
     ErrorCode::kBadData, "is of format 0"},
    {"wrong types",
     [](const fs::path& f) {
       edit_manifest(f, [](Json& m) { file_of(m, 0).set("bytes", "many"); });
     },
     ErrorCode::kBadData, "not"},
    {"no list", [](const fs::path& f) { edit_manifest(f, [](Json& m) { m.set("files", 5); }); },
     ErrorCode::kBadData, "files"},
    {"no JSON", [](const fs::path& f) { write_file(f / "manifest.json", "{\"format\": 2, \"fil"); },
     ErrorCode::kBadData, "manifest.json"},
    {"no manifest", [](const fs::path& f) { fs::remove(f / "manifest.json"); }, ErrorCode::kNoInput,
     "manifest.json"},
    {"another step's folder",
     [](const fs::path& f) {
       const fs::path other = f.parent_path() / "kept";
       fs::rename(f, other);
       fs::rename(f.parent_path() / "checkpoint-8", f);
       fs::rename(other, f.parent_path() / "checkpoint-8");
     },
     ErrorCode::kBadData, "is the state of step 8"},
};

}  // namespace

TEST_CASE(
    "resume takes the newest checkpoint that verifies and says why it skipped each newer one") {
  CheckpointRig rig(false);
  for (const Lie& lie : kLies) {
    CAPTURE(lie.name);
    TempDir dir;
    for (int64_t step : {7, 8, 9}) rig.save(dir.path(), step, 0);
    lie.tell(dir / "checkpoint-9");
    LF_CHECK_ERROR(train::verify_checkpoint(dir / "checkpoint-9"), lie.code, lie.says);
    g_lines.clear();
    set_log_sink(collect);
    const auto newest = train::newest_checkpoint(dir.path());
    set_log_sink(nullptr);
    REQUIRE(newest.has_value());
    const bool swapped = std::string(lie.name) == "another step's folder";
    CHECK(newest->filename() == (swapped ? "checkpoint-7" : "checkpoint-8"));
    REQUIRE(g_lines.size() == (swapped ? 2 : 1));
    CHECK(g_lines[0].find("skipped checkpoint " + (dir / "checkpoint-9").string()) !=
          std::string::npos);
    CHECK(g_lines[0].find(lie.says) != std::string::npos);
  }
}

TEST_CASE("a file that the manifest does not list is not read, and said") {
  CheckpointRig rig(false);
  TempDir dir;
  const fs::path folder = rig.save(dir.path(), 7);
  write_file(folder / "notes.txt", "mine");
  g_lines.clear();
  set_log_sink(collect);
  CHECK(train::newest_checkpoint(dir.path()) == folder);
  set_log_sink(nullptr);
  REQUIRE(g_lines.size() == 1);
  CHECK(g_lines[0].find("notes.txt: is not in the manifest") != std::string::npos);
}

TEST_CASE("checkpoints of full fine-tuning verify their LoongIR files") {
  CheckpointRig rig(true);
  TempDir dir;
  const fs::path folder = rig.save(dir.path(), 7);
  train::verify_checkpoint(folder);
  flip_byte(folder / "weights-00001-of-00001.lir", 70000);
  LF_CHECK_ERROR(train::verify_checkpoint(folder), ErrorCode::kBadData,
                 "weights-00001-of-00001.lir");
}
