// AdamW with decoupled weight decay (torch.optim.AdamW). Parameters and moments are FP32, or
// narrow: masters in bf16, moments in bf16 or in FP8 (E4M3, one power-of-two scale per 128
// elements, the second as its root), rounded stochastically.
//
// Element-wise (FP8: block-wise), and draws are addressed by (parameter, step, element), so results
// do not depend on threads or on how parameters are split over ranks.
// Thread-safety: one thread at a time; step() splits over the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "base/api.h"
#include "base/pool.h"
#include "kernels/optim.h"
#include "optim/parameter_view.h"
#include "optim/rounding_source.h"
#include "tensor/dtype.h"

namespace loongforge::optim {

enum class MomentFormat { kF32, kBf16, kFp8 };  // --moments fp32 | bf16 | fp8
LF_API std::string_view moment_format_name(MomentFormat format) noexcept;
LF_API std::optional<MomentFormat> parse_moment_format(std::string_view text) noexcept;

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // of views with decay
  MomentFormat moments = MomentFormat::kF32;
  RoundingSource* rounding = nullptr;  // REQUIRES not null where anything is narrow
};

// The masters, by element; views say which holds what.
struct Masters {
  float* f32 = nullptr;
  kernels::Bf16* bf16 = nullptr;
};

// One array of the optimizer's state: "<parameter>.exp_avg" or "<parameter>.exp_avg_sq"; FP8: codes
// as "<parameter>.exp_avg" and "<parameter>.exp_avg_sq_root", and "<either>.exponents".
struct StateArray {
  std::string name;
  tensor::DType dtype;
  std::vector<int64_t> shape;
  std::span<uint8_t> bytes;
  std::span<float> values() const {  // REQUIRES dtype kF32
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};

class LF_API AdamW {
 public:
  // Throws Error(kUsage) for options out of range: betas in [0, 1), eps >= 0, weight_decay >= 0.
  AdamW(std::vector<ParameterView> views, const AdamWOptions& options);

  // One update of all parameters by gradients * grad_scale (clipping and 1 / valid tokens
  // together).
  // REQUIRES finite gradients: a step with others is skipped by not calling this.
  void step(const Masters& masters, const float* gradients, double lr, double grad_scale,
            ThreadPool& pool);
  void step(float* masters, const float* gradients, double lr, double grad_scale,
            ThreadPool& pool) {
    step(Masters{masters, nullptr}, gradients, lr, grad_scale, pool);
  }

  int64_t steps() const noexcept { return steps_; }  // updates made; decides the bias correction
  void set_steps(int64_t steps) noexcept { steps_ = steps; }
  // Everything that a checkpoint must hold besides steps(): all arrays, in the order of the views.
  // The spans stay valid for the object's life; writing into them restores a state.
  std::vector<StateArray> state();
  // A moment of one view as fp32: what another format's state is made from (to nearest).
  void set_moment(size_t view, bool second, std::span<const float> values);

  const std::vector<ParameterView>& views() const noexcept { return views_; }
  MomentFormat moments() const noexcept { return options_.moments; }
  // Bytes of moments for such views.
  static size_t state_bytes(const std::vector<ParameterView>& views, MomentFormat moments);

 private:
  struct Piece {
    size_t view;
    int64_t begin, size;  // elements of the view
  };
  kernels::Elem moment_elem() const noexcept;
  kernels::AdamWArrays arrays_of(const Masters& masters, size_t view, int64_t begin);

  std::vector<ParameterView> views_;
  AdamWOptions options_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> exponents_at_;  // FP8: of each view, in blocks
  AlignedBuffer first_, second_;
  std::vector<int8_t> first_exponents_, second_exponents_;
  int64_t steps_ = 0;
};

}  // namespace loongforge::optim
