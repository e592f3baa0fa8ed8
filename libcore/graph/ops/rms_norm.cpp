// rms_norm: y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps), over the row or over groups of it
// (per-head norms). Backward: dx = rstd * (w dy - xhat * mean(w dy xhat)), dw = sum over rows of dy
// * xhat, xhat = x * rstd.
#include <type_traits>

#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

class RmsNorm final : public Op {
 public:
  RmsNorm(std::string name, int block, const RmsNormSpec& spec)
      : Op(std::move(name), block), s_(spec), groups_(spec.cols / spec.group) {}

  std::vector<OutputSpec> outputs() const override { return {{s_.cols, s_.elem}}; }
  std::vector<BufferSpec> aux() const override { return {{groups_, kernels::Elem::kF32}}; }
  std::vector<BufferSpec> temps(Phase phase) const override {
    if (phase != Phase::kBackward || s_.trainable < 0) return {};
    // For each head a row of `group` sums per kTokenBlock tokens, the last block begun as well.
    return {{(s_.cols + kernels::kTokenBlock - 1) / kernels::kTokenBlock, kernels::Elem::kF32,
             s_.cols}};
  }
  Needs backward_needs() const override { return {{0}, {}, {0}}; }
  bool cheap() const override { return true; }
  bool adds_residual() const override { return true; }
  bool trains() const override { return s_.trainable >= 0; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::norm);
    const kernels::Mat x = c.mat(i.in[0]);
    const kernels::MatOut y = c.out(i.out[0]);
    float* rstd = i.aux[0].valid() ? c.raw<float>(i.aux[0]) : nullptr;
    const float* w = c.params.vector(s_.weight);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      for (int64_t g = 0; g < groups_; ++g) {
        float* rstd_of_group = rstd == nullptr ? nullptr : rstd + g * c.tokens();
        kernels::rms_norm_forward(group_of(x, g), w, s_.eps, s_.group, group_of(y, g),
                                  rstd_of_group, r0, r1);
      }
    });
  }

  void backward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::norm);
    const kernels::Mat dy = c.mat(i.d_out[0]), x = c.mat(i.in[0]);
    const kernels::MatOut dx = c.out(i.d_in[0]);
    const kernels::Mat residual = i.residual[0].valid()
                                      ? c.mat(i.residual[0])
                                      : kernels::Mat{nullptr, 0, kernels::Elem::kF32};
    const float* rstd = c.raw<float>(i.aux[0]);
    const float* w = c.params.vector(s_.weight);
    float* blocks = s_.trainable >= 0 ? c.raw<float>(i.temp[0]) : nullptr;
    const int64_t n_blocks = (c.tokens() + kernels::kTokenBlock - 1) / kernels::kTokenBlock;
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      for (int64_t g = 0; g < groups_; ++g) {
        float* blocks_of_group = blocks == nullptr ? nullptr : blocks + g * n_blocks * s_.group;
        const kernels::Mat added = residual.data == nullptr ? residual : group_of(residual, g);
        kernels::rms_norm_backward(group_of(dy, g), group_of(x, g), w, rstd + g * c.tokens(),
                                   s_.group, added, group_of(dx, g), blocks_of_group, r0, r1);
      }
    });
    if (blocks == nullptr) return;
    float* grad = c.gradients + c.params.trainables()[static_cast<size_t>(s_.trainable)].offset;
    kernels::sum_blocks(blocks, groups_ * n_blocks, s_.group, grad, false, 0, s_.group);
  }

 private:
  // Columns of one group; the tokens stay its rows, however far apart they lie (q and k share a
  // buffer with v).
  template <class M>
  M group_of(M m, int64_t g) const {
    using Bytes = std::conditional_t<std::is_same_v<M, kernels::Mat>, const uint8_t, uint8_t>;
    m.data = static_cast<Bytes*>(m.data) + g * s_.group * kernels::elem_bytes(m.elem);
    return m;
  }

  RmsNormSpec s_;
  int64_t groups_;
};

}  // namespace

std::unique_ptr<Op> make_rms_norm(std::string name, int block, const RmsNormSpec& spec) {
  return std::make_unique<RmsNorm>(std::move(name), block, spec);
}

}  // namespace loongforge::graph
