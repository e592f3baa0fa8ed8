// A tiny model with masters and moments of its own, ready to be saved: what the tests of
// checkpoints share.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "graph/tiny_models.h"
#include "train/checkpoint.h"
#include "train/checkpoint_manifest.h"

namespace loongforge::test {

struct CheckpointRig {
  explicit CheckpointRig(bool full, const std::string& name = "llama3")
      : model(name, "bf16"), pool(2) {
    run.full = full;
    params = load_tiny(model, run, pool);
    make_optimizer();
    float* m = params->masters();
    for (int64_t i = 0; i < params->trainable_floats(); ++i)
      m[i] += 1e-3f * static_cast<float>(i % 97);
    for (optim::StateArray& a : optimizer->state())
      for (size_t i = 0; i < a.values().size(); ++i)
        a.values()[i] = 1e-5f * static_cast<float>((i * 31) % 1009);
    optimizer->set_steps(5);
    state.step = 7;
    state.tokens_seen = 1234;
    state.run.set("seed", 42);
  }
  void make_optimizer() {
    std::vector<optim::ParameterView> views;
    for (const graph::Trainable& t : params->trainables())
      views.push_back({t.name, t.rows, t.cols, t.offset, t.decay});
    optimizer = std::make_unique<optim::AdamW>(views, optim::AdamWOptions{});
  }
  train::CheckpointSource source() {
    train::TrainerFacts facts;
    facts.max_steps = 100;
    facts.epoch = 0.5;
    return {&model.reader(), params.get(), optimizer.get(), "tiny", facts};
  }
  std::filesystem::path save(const std::filesystem::path& output_dir, int64_t step,
                             int64_t keep = 2) {
    state.step = step;
    return train::save_checkpoint(output_dir, state, source(), keep);
  }
  bool same_masters(const graph::Parameters& other) const {
    for (size_t t = 0; t < params->trainables().size(); ++t) {
      const auto& a = params->trainables()[t];
      const auto& b = other.trainables()[t];
      if (a.name != b.name || std::memcmp(params->masters() + a.offset, other.masters() + b.offset,
                                          static_cast<size_t>(a.size()) * 4) != 0)
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

inline void flip_byte(const std::filesystem::path& file, std::streamoff at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const char c = static_cast<char>(f.get());
  f.seekp(at);
  f.put(static_cast<char>(c ^ 0x40));
}

}  // namespace loongforge::test
