#include "train/checkpoint.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "convert/export.h"
#include "graph/tiny_models.h"
#include "support/expect_error.h"
#include "train/adapter_io.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

namespace {

struct Rig {
  explicit Rig(bool full, const std::string& name = "llama3") : model(name, "bf16"), pool(2) {
    run.full = full;
    params = load_tiny(model, run, pool);
    make_optimizer();
    float* m = params->masters();
    for (int64_t i = 0; i < params->trainable_floats(); ++i) m[i] += 1e-3f * static_cast<float>(i % 97);
    for (optim::StateArray& a : optimizer->state())
      for (size_t i = 0; i < a.values.size(); ++i) a.values[i] = 1e-5f * static_cast<float>((i * 31) % 1009);
    optimizer->set_steps(7);
    state.step = 7;
    state.tokens_seen = 1234;
    state.run.set("seed", 42);
  }
  void make_optimizer() {
    std::vector<optim::ParameterView> views;
    for (const graph::Trainable& t : params->trainables()) views.push_back({t.name, t.rows, t.cols, t.offset, t.decay});
    optimizer = std::make_unique<optim::AdamW>(views, optim::AdamWOptions{});
  }
  train::CheckpointSource source() { return {&model.reader(), params.get(), optimizer.get(), "tiny", 100, 0.5}; }
  bool same_masters(const graph::Parameters& other) const {
    for (size_t t = 0; t < params->trainables().size(); ++t) {
      const auto& a = params->trainables()[t];
      const auto& b = other.trainables()[t];
      if (a.name != b.name || std::memcmp(params->masters() + a.offset, other.masters() + b.offset, static_cast<size_t>(a.size()) * 4) != 0)
        return false;
    }
    return true;
  }

  TinyModel model;
  ThreadPool pool;
  TinyRun run;
  std::unique_ptr<graph::Parameters> params;
  std::unique_ptr<optim::AdamW> optimizer;
  train::CheckpointState state;
};

void flip_byte(const fs::path& file, std::streamoff at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const char c = static_cast<char>(f.get());
  f.seekp(at);
  f.put(static_cast<char>(c ^ 0x40));
}

}  // namespace

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
  CHECK(rig.optimizer->steps() == 7);
  auto a = rig.optimizer->state(), b = old_optimizer->state();
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::memcmp(a[i].values.data(), b[i].values.data(), a[i].values.size_bytes()) == 0);
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
    CHECK(exported->tensors().size() == formats::open_tensor_source(data_dir() / "models" / name / "checkpoint")->tensors().size());
    for (const graph::Trainable& t : rig.params->trainables()) {
      const std::vector<float> values = exported->read_f32(exported->at(t.name));
      REQUIRE(values.size() == static_cast<size_t>(t.size()));
      CHECK(std::memcmp(values.data(), rig.params->masters() + t.offset, values.size() * sizeof(float)) == 0);
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
  LF_CHECK_ERROR(train::verify_checkpoint(dir / "checkpoint-10"), ErrorCode::kBadData, "optimizer.safetensors");
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-9");
  fs::resize_file(dir / "checkpoint-9" / "adapter_model.safetensors", 100);
  CHECK(train::newest_checkpoint(dir.path())->filename() == "checkpoint-8");
  fs::remove(dir / "checkpoint-8" / "manifest.json");
  CHECK_FALSE(train::newest_checkpoint(dir.path()).has_value());
}

TEST_CASE("a manifest that points outside its folder is refused") {
  Rig rig(false);
  TempDir dir;
  const fs::path folder = train::save_checkpoint(dir.path(), rig.state, rig.source(), 2);
  std::string text = read_text(folder / "manifest.json");
  const size_t at = text.find("adapter_config.json");
  text.replace(at, 19, "../../../etc/passwd");
  write_text_atomic(folder / "manifest.json", text);
  LF_CHECK_ERROR(train::verify_checkpoint(folder), ErrorCode::kBadData, "outside the checkpoint");
}
