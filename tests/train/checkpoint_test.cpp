#include "train/checkpoint.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "convert/export.h"
#include "support/expect_error.h"
#include "support/file_faults.h"
#include "train/adapter_io.h"
#include "train/checkpoint_rig.h"
#include "train/run_folder.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

using Rig = CheckpointRig;

TEST_CASE("a LoRA checkpoint restores masters and moments to the bit") {
  Rig rig(false);
  TempDir dir;
  const fs::path folder = train::save_checkpoint(dir.path(), rig.state, rig.source(), 2);
  CHECK(folder.filename() == "checkpoint-7");
  CHECK(fs::exists(folder / "adapter_config.json"));
  CHECK(fs::read_symlink(dir / "latest") == "checkpoint-7");
  train::verify_checkpoint(folder);
  const train::CheckpointState state = train::read_state(folder);
  CHECK(state.step == 7);
  CHECK(state.tokens_seen == 1234);
  CHECK(state.run == rig.state.run);

  graph::ParameterOptions o = rig.params->options();
  o.lora_options = train::adapter_options(folder);
  auto loaded = graph::Parameters::load(rig.model.reader(), o, rig.pool);
  const auto before = std::move(rig.params);
  const auto old_optimizer = std::move(rig.optimizer);
  rig.params = std::move(loaded);
  rig.make_optimizer();
  train::restore(folder, state, *rig.params, *rig.optimizer, rig.pool);
  CHECK(rig.same_masters(*before));
  CHECK(rig.optimizer->steps() == 5);
  auto a = rig.optimizer->state(), b = old_optimizer->state();
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(std::memcmp(a[i].values().data(), b[i].values().data(), a[i].values().size_bytes()) == 0);
}

TEST_CASE("a checkpoint of full fine-tuning is a LoongIR folder of the masters, in every family") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    Rig rig(true, name);
    TempDir dir;
    const fs::path folder = train::save_checkpoint(dir.path(), rig.state, rig.source(), 2);
    train::verify_checkpoint(folder);
    const ir::Reader reader(folder);
    CHECK(reader.model().quantize == "fp32");
    auto loaded = graph::Parameters::load(reader, rig.params->options(), rig.pool);
    CHECK(rig.same_masters(*loaded));
    CHECK_FALSE(fs::exists(folder / "model"));
    // Every trained tensor (biases and norms of heads too) goes out as it was trained.
    convert::ExportOptions options;
    options.input_path = folder;
    options.output_path = dir / "hf";
    options.dtype = "fp32";
    convert::export_model(options);
    const auto exported = formats::open_tensor_source(dir / "hf");
    CHECK(
        exported->tensors().size() ==
        formats::open_tensor_source(data_dir() / "models" / name / "checkpoint")->tensors().size());
    for (const graph::Trainable& t : rig.params->trainables()) {
      const std::vector<float> values = exported->read_f32(exported->at(t.name));
      REQUIRE(values.size() == static_cast<size_t>(t.size()));
      CHECK(std::memcmp(values.data(), rig.params->masters() + t.offset,
                        values.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("two checkpoints of the same state are the same bytes") {
  Rig rig(false);
  TempDir a, b;
  const fs::path one = train::save_checkpoint(a.path(), rig.state, rig.source(), 2);
  const fs::path two = train::save_checkpoint(b.path(), rig.state, rig.source(), 2);
  for (const auto& entry : fs::directory_iterator(one))
    CHECK(read_text(entry.path()) == read_text(two / entry.path().filename()));
}

TEST_CASE("the newest checkpoint that verifies is taken, older ones are removed beyond the limit") {
  Rig rig(false);
  TempDir dir;
  for (int64_t step : {7, 8, 9, 10}) {
    rig.state.step = step;
    train::save_checkpoint(dir.path(), rig.state, rig.source(), 3);
  }
  CHECK_FALSE(fs::exists(dir / "checkpoint-7"));
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-10");
  flip_byte(dir / "checkpoint-10" / "optimizer.safetensors", 5000);
  LF_CHECK_ERROR(train::verify_checkpoint(dir / "checkpoint-10"), ErrorCode::kBadData,
                 "optimizer.safetensors");
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-9");
  fs::resize_file(dir / "checkpoint-9" / "adapter_model.safetensors", 100);
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-8");
  fs::remove(dir / "checkpoint-8" / "manifest.json");
  CHECK_FALSE(train::newest_checkpoint(dir.path()).has_value());
}

TEST_CASE("the best checkpoint and the one just written outlive the limit") {
  Rig rig(false);
  TempDir dir;
  rig.state.best = {1.0, 7, 7, 0};
  for (int64_t step : {7, 8, 9, 10}) rig.save(dir.path(), step);
  for (int64_t step : {7, 9, 10}) CHECK(fs::exists(dir / ("checkpoint-" + std::to_string(step))));
  CHECK_FALSE(fs::exists(dir / "checkpoint-8"));
  CHECK(fs::read_symlink(dir / "best") == "checkpoint-7");
  CHECK(train::read_state(dir / "checkpoint-10").best == rig.state.best);
  rig.save(dir.path(), 2);  // a run that was continued from an older one
  CHECK(fs::exists(dir / "checkpoint-2"));
  CHECK(fs::read_symlink(dir / "latest") == "checkpoint-2");
}

TEST_CASE("the limit removes nothing that a run did not write") {
  Rig rig(false);
  TempDir dir;
  for (int64_t step : {5, 6}) rig.save(dir.path(), step);
  std::ofstream(dir / "checkpoint-5" / "notes.txt") << "mine";
  fs::create_directory(dir / "checkpoint-4");  // another program's
  std::ofstream(dir / "checkpoint-4" / "pytorch_model.bin") << "x";
  fs::create_directory(dir / "checkpoint-99");  // does not count as the newest
  std::ofstream(dir / "checkpoint-99" / "pytorch_model.bin") << "x";
  for (int64_t step : {7, 8}) rig.save(dir.path(), step);
  for (const char* kept : {"checkpoint-4", "checkpoint-5/notes.txt", "checkpoint-5/manifest.json",
                           "checkpoint-7", "checkpoint-8", "checkpoint-99/pytorch_model.bin"})
    CHECK_MESSAGE(fs::exists(dir / kept), kept);
  CHECK_FALSE(fs::exists(dir / "checkpoint-6"));
}

TEST_CASE("what stands in a checkpoint's place is replaced when it is a folder, else named") {
  Rig rig(false);
  TempDir dir;
  rig.save(dir.path(), 6);
  fs::create_directory(dir / "checkpoint-7");
  std::ofstream(dir / "checkpoint-7" / "half") << "x";
  train::verify_checkpoint(rig.save(dir.path(), 7));
  CHECK_FALSE(fs::exists(dir / "checkpoint-7" / "half"));
  std::ofstream(dir / "checkpoint-8") << "x";
  LF_CHECK_ERROR(rig.save(dir.path(), 8), ErrorCode::kUsage,
                 "checkpoint-8: exists and is not a folder");
  fs::create_directory_symlink("checkpoint-7", dir / "checkpoint-9");
  LF_CHECK_ERROR(rig.save(dir.path(), 9), ErrorCode::kUsage, "checkpoint-9: is a symbolic link");
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-7");
}

namespace {

// Folders in memory, where syncing costs nothing: these cases save hundreds of times.
class InMemory {
 public:
  InMemory() {
    if (const char* old = std::getenv("TMPDIR"); old != nullptr) old_ = old;
    if (fs::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
  }
  ~InMemory() {
    if (old_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", old_.c_str(), 1);
  }

 private:
  std::string old_;
};

constexpr fs::copy_options kWithLinks =
    fs::copy_options::recursive | fs::copy_options::copy_symlinks;

// checkpoint-5 and -6, as `keep` holds them.
void two_checkpoints(Rig& rig, const TempDir& dir) {
  for (int64_t step : {5, 6}) rig.save(dir.path(), step);
}

// After a save of checkpoint-7 beside checkpoint-5 and -6 that went wrong somewhere.
void check_survives(Rig& rig, const fs::path& dir, size_t at) {
  CAPTURE(at);
  train::verify_checkpoint(dir / "checkpoint-6");
  const bool arrived = fs::exists(dir / "checkpoint-7");
  if (arrived) train::verify_checkpoint(dir / "checkpoint-7");  // complete or absent
  {
    train::RunFolder next(dir);  // the next start
    next.begin(false);
    const auto resumed = next.resume("true");
    REQUIRE(resumed.has_value());
    CHECK(resumed->filename() == (arrived ? "checkpoint-7" : "checkpoint-6"));
    const std::set<std::string> known = {"checkpoint-5", "checkpoint-6", "checkpoint-7", "latest",
                                         ".lock"};
    for (const auto& entry : fs::directory_iterator(dir))
      CHECK(known.contains(entry.path().filename().string()));
  }
  rig.save(dir, 7);
  train::verify_checkpoint(dir / "checkpoint-7");
  CHECK(fs::read_symlink(dir / "latest") == "checkpoint-7");
  CHECK_FALSE(fs::exists(dir / "checkpoint-5"));
}

}  // namespace

TEST_CASE(
    "a save that fails at any step leaves the older checkpoint, and resume takes the newest that "
    "verifies") {
  const InMemory memory;
  for (const bool full : {false, true}) {
    Rig rig(full);
    TempDir counted, ready;
    two_checkpoints(rig, counted);
    two_checkpoints(rig, ready);
    const size_t steps = steps_of([&] { rig.save(counted.path(), 7); }).size();
    REQUIRE(steps > 30);
    size_t errors = 0;
    for (size_t at = 0; at < steps; ++at) {
      for (const Fault fault : {Fault::kOnce, Fault::kFromThere, Fault::kShortWrite}) {
        if (full && fault == Fault::kOnce && at % 4 != 0)
          continue;  // the same code: a part is enough
        TempDir dir;
        fs::copy(ready.path(), dir.path(), kWithLinks);
        FailAt watch(at, at % 3 == 0 ? ENOSPC : at % 3 == 1 ? EIO : EROFS, fault);
        try {
          const Watching watching(watch);
          rig.save(dir.path(), 7);
        } catch (const Error& e) {
          ++errors;
          CHECK(e.code() == ErrorCode::kFailed);
          CHECK(std::string(e.what()).find(dir.path().string()) != std::string::npos);
        }
        check_survives(rig, dir.path(), at);
      }
    }
    CHECK(errors > steps);  // what is not an error is the removal of old checkpoints
  }
}

TEST_CASE(
    "a save killed at any step leaves the older checkpoint, and resume takes the newest that "
    "verifies") {
  const InMemory memory;
  for (const bool full : {false, true}) {
    Rig rig(full);
    TempDir counted, ready;
    two_checkpoints(rig, counted);
    two_checkpoints(rig, ready);
    const size_t steps = steps_of([&] { rig.save(counted.path(), 7); }).size();
    for (size_t at = 0; at < steps; ++at) {
      TempDir dir;
      fs::copy(ready.path(), dir.path(), kWithLinks);
      kill_at(at, [&] { rig.save(dir.path(), 7); });
      check_survives(rig, dir.path(), at);
    }
  }
}

TEST_CASE("the room that is asked for is a little more than a checkpoint takes") {
  for (const bool full : {false, true}) {
    Rig rig(full);
    TempDir dir;
    uint64_t taken = 0;
    for (const auto& file : fs::directory_iterator(rig.save(dir.path(), 3)))
      taken += file.file_size();
    const uint64_t asked = train::checkpoint_bytes(*rig.params, *rig.optimizer, rig.model.reader());
    CHECK(asked >= taken);
    CHECK(asked < taken + 2'000'000);
  }
}
