// AdamW with decoupled weight decay (torch.optim.AdamW) over FP32 parameters, moments in FP32.
//
// Element-wise, so results do not depend on threads or on how parameters are split over ranks.
// Thread-safety: one thread at a time; step() splits over the pool.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/api.h"
#include "base/pool.h"
#include "optim/parameter_view.h"

namespace loongforge::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // of views with decay
};

// One array of the optimizer's state: "<parameter>.exp_avg" or "<parameter>.exp_avg_sq".
struct StateArray {
  std::string name;
  int64_t rows, cols;
  std::span<float> values;
};

class LF_API AdamW {
 public:
  // Throws Error(kUsage) for options out of range: betas in [0, 1), eps >= 0, weight_decay >= 0.
  AdamW(std::vector<ParameterView> views, const AdamWOptions& options);

  // One update of all parameters by gradients * grad_scale (clipping and 1 / valid tokens
  // together).
  // REQUIRES finite gradients: a step with others is skipped by not calling this.
  void step(float* parameters, const float* gradients, double lr, double grad_scale,
            ThreadPool& pool) noexcept;

  int64_t steps() const noexcept { return steps_; }  // updates made; decides the bias correction
  void set_steps(int64_t steps) noexcept { steps_ = steps; }
  // Everything that a checkpoint must hold besides steps(): all arrays, in the order of the views.
  // The spans stay valid for the object's life; writing into them restores a state.
  std::vector<StateArray> state();

  const std::vector<ParameterView>& views() const noexcept { return views_; }
  // Bytes of moments for such views.
  static size_t state_bytes(const std::vector<ParameterView>& views);

 private:
  struct Piece {
    int64_t offset, size;
    bool decay;
  };
  std::vector<ParameterView> views_;
  AdamWOptions options_;
  std::vector<Piece> pieces_;
  AlignedBuffer first_, second_;
  int64_t steps_ = 0;
};

}  // namespace loongforge::optim
