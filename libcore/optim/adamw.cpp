#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/math.h"
#include "kernels/optim.h"

namespace loongforge::optim {
namespace {

// Floats of a task: five streams of it stay in a core's L2 cache.
constexpr int64_t kPiece = 1 << 14;

void check(const char* name, double value, bool good, const char* allowed) {
  if (!good)
    throw_usage(std::string(name) + " is " + std::to_string(value),
                std::string("it must be ") + allowed);
}

AlignedBuffer zeros(size_t bytes) {
  AlignedBuffer buffer(bytes, Pages::kTransparent);
  // A small buffer is undefined; a large one is zero, and stays untouched until it is used.
  if (bytes != 0 && bytes < kMmapBytes) std::memset(buffer.data(), 0, bytes);
  return buffer;
}

}  // namespace

AdamW::AdamW(std::vector<ParameterView> views, const AdamWOptions& options)
    : views_(std::move(views)), options_(options) {
  check("adam_beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1,
        "at least 0 and below 1");
  check("adam_beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1,
        "at least 0 and below 1");
  check("adam_epsilon", options.eps, options.eps >= 0 && std::isfinite(options.eps), "0 or more");
  check("weight_decay", options.weight_decay,
        options.weight_decay >= 0 && std::isfinite(options.weight_decay), "0 or more");
  size_t bytes = static_cast<size_t>(buffer_floats(views_)) * sizeof(float);
  first_ = zeros(bytes);
  second_ = zeros(bytes);
  for (const ParameterView& view : views_) {
    for (int64_t at = 0; at < view.size(); at += kPiece) {
      pieces_.push_back({view.offset + at, std::min(kPiece, view.size() - at), view.decay});
    }
  }
}

void AdamW::step(float* parameters, const float* gradients, double lr, double grad_scale,
                 ThreadPool& pool) noexcept {
  ++steps_;
  kernels::AdamW h{};
  h.lr = static_cast<float>(lr);
  h.beta1 = static_cast<float>(options_.beta1);
  h.beta2 = static_cast<float>(options_.beta2);
  h.eps = static_cast<float>(options_.eps);
  h.grad_scale = static_cast<float>(grad_scale);
  // The correction is that of the rounded betas that the kernel uses: 1 - 0.999f is 1.3e-5 away
  // from 0.001.
  auto t = static_cast<double>(steps_);
  auto correction = [t](float beta) {
    return beta == 0 ? 1.0 : 1.0 - kernels::det_pow(double{beta}, t);
  };
  h.bias1 = static_cast<float>(correction(h.beta1));
  h.sqrt_bias2 = static_cast<float>(std::sqrt(correction(h.beta2)));
  kernels::AdamW plain = h;
  h.weight_decay = static_cast<float>(options_.weight_decay);
  float* first = first_.as<float>();
  float* second = second_.as<float>();
  pool.run(static_cast<int64_t>(pieces_.size()), [&](int64_t task, int) {
    const Piece& piece = pieces_[static_cast<size_t>(task)];
    int64_t at = piece.offset;
    kernels::adamw(piece.decay ? h : plain, parameters + at, first + at, second + at,
                   gradients + at, piece.size);
  });
}

std::vector<StateArray> AdamW::state() {
  std::vector<StateArray> arrays;
  for (const ParameterView& view : views_) {
    auto size = static_cast<size_t>(view.size());
    arrays.push_back(
        {view.name + ".exp_avg", view.rows, view.cols, {first_.as<float>() + view.offset, size}});
    arrays.push_back({view.name + ".exp_avg_sq",
                      view.rows,
                      view.cols,
                      {second_.as<float>() + view.offset, size}});
  }
  return arrays;
}

size_t AdamW::state_bytes(const std::vector<ParameterView>& views) {
  return 2 * static_cast<size_t>(buffer_floats(views)) * sizeof(float);
}

}  // namespace loongforge::optim
