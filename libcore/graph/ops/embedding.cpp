// embedding: y[t, :] = W[id(t), :]. Ids are LoongIR ids (even): the row is id / 2.
#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/optim.h"

namespace loongforge::graph {
namespace {

class Embedding final : public Op {
 public:
  Embedding(std::string name, std::string weight, int64_t cols, kernels::Elem edge, int trainable,
            bool shared)
      : Op(std::move(name), -1),
        weight_(std::move(weight)),
        cols_(cols),
        edge_(edge),
        trainable_(trainable),
        shared_gradient_(shared) {}

  std::vector<OutputSpec> outputs() const override { return {{cols_, edge_}}; }
  bool trains() const override { return trainable_ >= 0; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::elementwise);
    const kernels::PackedWeight& w = c.params.weight(weight_).packed;
    const kernels::MatOut y = c.out(i.out[0]);
    std::vector<int32_t> rows(c.batch.ids.size());
    for (size_t t = 0; t < rows.size(); ++t) rows[t] = c.batch.ids[t] / 2;
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::MatOut part = y;
      part.data = static_cast<uint8_t*>(y.data) + r0 * y.ld * kernels::elem_bytes(y.elem);
      kernels::gather_weight_rows(w, rows.data() + r0, r1 - r0, part);
    });
  }

  // dW[id(t), :] += dy[t, :], in token order for every row; threads own disjoint sets of rows.
  // Added to what a tied head left.
  void backward(RunContext& c, const Instruction& i) const override {
    if (trainable_ < 0 || !i.d_out[0].valid()) return;
    Timed timed(c, &Profile::elementwise);
    const kernels::Mat dy = c.mat(i.d_out[0]);
    float* grad = c.gradients + c.params.trainables()[static_cast<size_t>(trainable_)].offset;
    const int64_t parts = c.pool.threads();
    if (!shared_gradient_)
      std::memset(grad, 0,
                  static_cast<size_t>(c.params.weight(weight_).packed.n * cols_) * sizeof(float));
    c.pool.run(parts, [&](int64_t part, int) {
      std::vector<float> row(static_cast<size_t>(cols_));
      for (int64_t t = 0; t < c.tokens(); ++t) {
        const int64_t id = c.batch.ids[static_cast<size_t>(t)] / 2;
        if (id % parts != part) continue;
        const auto* src =
            static_cast<const uint8_t*>(dy.data) + t * dy.ld * kernels::elem_bytes(dy.elem);
        kernels::cast(src, dy.elem, row.data(), kernels::Elem::kF32, cols_, false);
        kernels::accumulate(grad + id * cols_, row.data(), cols_);
      }
    });
  }

 private:
  std::string weight_;
  int64_t cols_;
  kernels::Elem edge_;
  int trainable_;
  bool shared_gradient_;
};

}  // namespace

std::unique_ptr<Op> make_embedding(std::string name, std::string weight, int64_t cols,
                                   kernels::Elem edge, int trainable, bool shared_gradient) {
  return std::make_unique<Embedding>(std::move(name), std::move(weight), cols, edge, trainable,
                                     shared_gradient);
}

}  // namespace loongforge::graph
