// rms_norm: y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps), over the row or over groups of it (per-head norms).
// Backward: dx = rstd * (w dy - xhat * mean(w dy xhat)), dw = sum over rows of dy * xhat, xhat = x * rstd.
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
    // A row of `group` sums per kTokenBlock rows of groups, the last block begun as well.
    return {{(s_.cols + kernels::kTokenBlock - 1) / kernels::kTokenBlock, kernels::Elem::kF32, s_.group}};
  }
  Needs backward_needs() const override { return {{0}, {}, {0}}; }
  bool cheap() const override { return true; }
  bool adds_residual() const override { return true; }
  bool trains() const override { return s_.trainable >= 0; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::norm);
    const kernels::Mat x = grouped(c.mat(i.in[0]));
    const kernels::MatOut y = grouped(c.out(i.out[0]));
    float* rstd = i.aux[0].valid() ? c.raw<float>(i.aux[0]) : nullptr;
    const float* w = c.params.vector(s_.weight);
    run_rows(c.pool, c.tokens() * groups_, [&](int64_t r0, int64_t r1) {
      kernels::rms_norm_forward(x, w, s_.eps, s_.group, y, rstd, r0, r1);
    });
  }

  void backward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::norm);
    const int64_t rows = c.tokens() * groups_;
    const kernels::Mat dy = grouped(c.mat(i.d_out[0])), x = grouped(c.mat(i.in[0]));
    kernels::MatOut dx = grouped(c.out(i.d_in[0]));
    const kernels::Mat residual = i.residual[0].valid() ? grouped(c.mat(i.residual[0]))
                                                        : kernels::Mat{nullptr, 0, kernels::Elem::kF32};
    const float* rstd = c.raw<float>(i.aux[0]);
    const float* w = c.params.vector(s_.weight);
    float* blocks = s_.trainable >= 0 ? c.raw<float>(i.temp[0]) : nullptr;
    run_rows(c.pool, rows, [&](int64_t r0, int64_t r1) {
      kernels::rms_norm_backward(dy, x, w, rstd, s_.group, residual, dx, blocks, r0, r1);
    });
    if (blocks == nullptr) return;
    float* grad = c.gradients + c.params.trainables()[static_cast<size_t>(s_.trainable)].offset;
    kernels::sum_blocks(blocks, (rows + kernels::kTokenBlock - 1) / kernels::kTokenBlock, s_.group, grad, false, 0,
                        s_.group);
  }

 private:
  // A row of several groups is seen as several rows.
  template <class M>
  M grouped(M m) const {
    if (groups_ > 1 && m.ld % s_.group == 0 && m.ld == s_.cols) m.ld = s_.group;
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
