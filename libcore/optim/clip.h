// The norm over all gradients, and what clipping makes of it.
//
// The norm is made of one double per block of 128 rows of each view, added in block order: it does
// not depend on how many threads or ranks made the blocks.
// Thread-safety: as the pool given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/api.h"
#include "base/pool.h"
#include "optim/parameter_view.h"

namespace loongforge::optim {

inline constexpr int64_t kNormBlockRows = 128;

struct GradientNorm {
  double norm = 0;     // of the gradients times scale
  bool finite = true;  // false: some gradient is infinite or NaN, the step must be skipped; norm is
                       // then NaN or infinite
};

// scale: what the gradients still have to be multiplied by (1 / valid tokens).
LF_API GradientNorm gradient_norm(const std::vector<ParameterView>& views, const float* gradients,
                                  double scale, ThreadPool& pool);

// As torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1. max_norm 0: no clipping.
// REQUIRES norm finite, max_norm >= 0.
LF_API double clip_factor(double norm, double max_norm) noexcept;

// Sums of squares of the view's blocks [first, first + out.size()), for ranks that hold a part.
LF_API void block_square_sums(const ParameterView& view, const float* gradients, int64_t first,
                              std::span<double> out) noexcept;
LF_API int64_t norm_blocks(const ParameterView& view) noexcept;

}  // namespace loongforge::optim
