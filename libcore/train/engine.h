// LoongParallelEngine for one rank: sums the gradients of a step's micro-batches by lane and tree,
// so that results do not depend on how many ranks share the work (DESIGN 7).
//
// Micro-batch i belongs to lane i mod lanes. Each micro-batch's gradient is summed from zero, then
// added to its lane in order; lanes are summed by one fixed binary tree, empty ones skipped. Losses
// and counts go the same way. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "graph/executor.h"

namespace loongforge::train {

class Engine {
 public:
  // REQUIRES lanes is a power of two.
  Engine(graph::Executor& executor, graph::Parameters& params, ThreadPool& pool, int64_t lanes);

  struct Result {
    graph::RunStats stats;
    float* gradients =
        nullptr;  // sums over the step's valid tokens, undivided; valid until the next call
    // What sums are multiplied by: every trained-on token of the step counts the same, however they
    // are cut into micro-batches.
    double scale() const { return 1.0 / static_cast<double>(stats.valid > 0 ? stats.valid : 1); }
    double loss() const { return stats.loss_sum * scale(); }
  };
  // micro_batch(i) makes batch i when its turn comes. masks(i): dropout of micro-batch i, may
  // return null.
  template <class MakeBatch, class MakeMasks>
  Result step(int64_t micro_batches, MakeBatch&& micro_batch, MakeMasks&& masks,
              graph::Profile* profile) {
    if (result_ != nullptr) give(std::move(result_));
    Part part = reduce(0, lanes_, micro_batches, [&](int64_t i, float* gradients, float* lane) {
      return run_one(micro_batch(i), masks(i), gradients, lane, profile);
    });
    return finish(std::move(part));
  }

  int64_t lanes() const { return lanes_; }
  // Gradient buffers that a step of this many micro-batches holds at once.
  int64_t buffers_needed(int64_t micro_batches) const;

 private:
  using Buffer = std::unique_ptr<AlignedBuffer>;
  struct Part {
    Buffer gradients;  // null: an empty lane
    graph::RunStats stats;
  };

  Buffer take();
  void give(Buffer buffer);
  // Runs one micro-batch into `gradients`; lane not null: adds every finished unit to it.
  graph::RunStats run_one(const graph::Batch& batch, const graph::MaskSource* masks,
                          float* gradients, float* lane, graph::Profile* profile);
  void add_block(int block, const float* from, float* to);
  void add_all(const float* from, float* to);
  Result finish(Part part);

  template <class Run>
  Part lane_sum(int64_t lane, int64_t micro_batches, Run& run) {
    Part part;
    for (int64_t i = lane; i < micro_batches; i += lanes_) {
      if (part.gradients == nullptr) {
        part.gradients = take();
        part.stats.add(run(i, part.gradients->template as<float>(), nullptr));
      } else {
        Buffer own = take();
        part.stats.add(run(i, own->template as<float>(), part.gradients->template as<float>()));
        give(std::move(own));
      }
    }
    return part;
  }

  template <class Run>
  Part reduce(int64_t lane0, int64_t lane1, int64_t micro_batches, Run&& run) {
    if (lane0 >= micro_batches) return {};
    if (lane1 - lane0 == 1) return lane_sum(lane0, micro_batches, run);
    const int64_t middle = (lane0 + lane1) / 2;
    Part left = reduce(lane0, middle, micro_batches, run);
    Part right = reduce(middle, lane1, micro_batches, run);
    if (right.gradients == nullptr) return left;
    add_all(right.gradients->as<float>(), left.gradients->as<float>());
    give(std::move(right.gradients));
    left.stats.add(right.stats);
    return left;
  }

  graph::Executor& executor_;
  graph::Parameters& params_;
  ThreadPool& pool_;
  int64_t lanes_;
  std::vector<Buffer> free_;
  Buffer result_;
};

}  // namespace loongforge::train
