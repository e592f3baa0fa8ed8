#include "optim/clip.h"

#include <algorithm>
#include <cmath>

#include "kernels/optim.h"

namespace loongforge::optim {

int64_t norm_blocks(const ParameterView& view) noexcept {
  return (view.rows + kNormBlockRows - 1) / kNormBlockRows;
}

void block_square_sums(const ParameterView& view, const float* gradients, int64_t first,
                       std::span<double> out) noexcept {
  const float* data = gradients + view.offset;
  for (double& sum : out) {
    int64_t row = first * kNormBlockRows;
    int64_t rows = std::min(kNormBlockRows, view.rows - row);
    sum = kernels::sum_squares(data + row * view.cols, rows * view.cols);
    ++first;
  }
}

GradientNorm gradient_norm(const std::vector<ParameterView>& views, const float* gradients,
                           double scale, ThreadPool& pool) {
  struct Block {
    const ParameterView* view;
    int64_t number;
  };
  std::vector<Block> blocks;
  for (const ParameterView& view : views) {
    for (int64_t i = 0; i < norm_blocks(view); ++i) blocks.push_back({&view, i});
  }
  std::vector<double> sums(blocks.size());
  pool.run(static_cast<int64_t>(blocks.size()), [&](int64_t task, int) {
    auto at = static_cast<size_t>(task);
    block_square_sums(*blocks[at].view, gradients, blocks[at].number, {&sums[at], 1});
  });
  // The square of any float is finite in double and the sum of all too: it is non-finite only where
  // a gradient is.
  double total = 0;
  for (double sum : sums) total += sum;
  return {std::sqrt(total) * scale, std::isfinite(total)};
}

double clip_factor(double norm, double max_norm) noexcept {
  if (max_norm == 0) return 1.0;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace loongforge::optim
