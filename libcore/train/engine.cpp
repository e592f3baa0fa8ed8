#include "train/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/optim.h"

namespace loongforge::train {

Engine::Engine(graph::Executor& executor, graph::Parameters& params, ThreadPool& pool,
               int64_t lanes)
    : executor_(executor), params_(params), pool_(pool), lanes_(lanes) {}

Engine::Buffer Engine::take() {
  if (!free_.empty()) {
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  auto buffer = std::make_unique<AlignedBuffer>(
      static_cast<size_t>(params_.trainable_floats()) * sizeof(float), Pages::kTransparent);
  std::memset(buffer->data(), 0, buffer->size());  // the gaps between arrays are summed as well
  return buffer;
}

void Engine::give(Buffer buffer) { free_.push_back(std::move(buffer)); }

int64_t Engine::buffers_needed(int64_t micro_batches) const {
  const int64_t used_lanes = std::min(lanes_, micro_batches);
  int64_t levels = 0;
  for (int64_t width = 1; width < used_lanes; width *= 2) ++levels;
  return 1 + levels + (micro_batches > lanes_ ? 1 : 0);
}

graph::RunStats Engine::run_one(const graph::Batch& batch, const graph::MaskSource* masks,
                                float* gradients, float* lane, graph::Profile* profile) {
  graph::RunRequest request;
  request.gradients = gradients;
  request.masks = masks;
  request.profile = profile;
  if (lane != nullptr) {
    size_t seen = 0;
    const size_t units = executor_.plan().units.size();
    // What belongs to no block (embedding, final norm, head) is complete with the last unit only.
    request.on_unit = [this, gradients, lane, seen, units](int block) mutable {
      ++seen;
      if (block >= 0) add_block(block, gradients, lane);
      if (seen == units) add_block(-1, gradients, lane);
    };
  }
  return executor_.run(batch, request);
}

void Engine::add_block(int block, const float* from, float* to) {
  constexpr int64_t kChunk = 1 << 16;
  for (const graph::Trainable& t : params_.trainables()) {
    if (t.block != block) continue;
    pool_.run((t.size() + kChunk - 1) / kChunk, [&](int64_t c, int) {
      const int64_t begin = t.offset + c * kChunk;
      kernels::accumulate(to + begin, from + begin, std::min(kChunk, t.size() - c * kChunk));
    });
  }
}

void Engine::add_all(const float* from, float* to) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t n = params_.trainable_floats();
  pool_.run((n + kChunk - 1) / kChunk, [&](int64_t c, int) {
    kernels::accumulate(to + c * kChunk, from + c * kChunk, std::min(kChunk, n - c * kChunk));
  });
}

Engine::Result Engine::finish(Part part) {
  result_ = std::move(part.gradients);
  Result result{std::move(part.stats), nullptr};
  if (result_ != nullptr) result.gradients = result_->as<float>();
  return result;
}

}  // namespace loongforge::train
