// Runs a plan on batches. Owns the arena; weights and gradients belong to others.
// Thread-safety: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/aligned.h"
#include "base/api.h"
#include "graph/plan.h"

namespace loongforge::graph {

struct RunRequest {
  float* gradients = nullptr;  // training: flat, overwritten with this batch's sums (undivided)
  const MaskSource* masks = nullptr;  // training with dropout
  KvCache* cache = nullptr;  // generation: one document continued; advanced by the batch's tokens
  float* logits = nullptr;   // [documents, vocabulary]
  float* all_logits = nullptr;             // [tokens, vocabulary]
  std::vector<float>* row_loss = nullptr;  // per token row
  Profile* profile = nullptr;
  std::function<void(int block)> on_unit;  // training: after a block's gradients are complete (-1
                                           // comes twice, the last time when everything is)
};

class LF_API Executor {
 public:
  Executor(Plan plan, Parameters& params, ThreadPool& pool);

  const Plan& plan() const { return plan_; }
  // scaling: what delayed scaling goes by; a run with gradients adds what it saw. measure_errors:
  // RunStats tell what rounding cost as well (one more pass over what is rounded).
  void set_scaling(quant::ScalingState* scaling) { scaling_ = scaling; }
  void set_measure_errors(bool on) { measure_errors_ = on; }
  // Reserves address space for batches of up to `tokens` rows; memory becomes resident as it is
  // used.
  void reserve(int64_t tokens);
  size_t arena_bytes(int64_t tokens);
  RunStats run(const Batch& batch, const RunRequest& request);

 private:
  const MemoryLayout& layout(int64_t tokens);

  Plan plan_;
  Parameters& params_;
  ThreadPool& pool_;
  quant::ScalingState* scaling_ = nullptr;
  bool measure_errors_ = false;
  AlignedBuffer arena_;
  std::map<int64_t, MemoryLayout> layouts_;
};

}  // namespace loongforge::graph
