// add: y = a + b, the residual stream. fp32 inside a block, rounded to the edge's element at its
// end. The gradient of both inputs is the gradient of y, passed on without a copy.
#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

class Add final : public Op {
 public:
  Add(std::string name, int block, int64_t cols, kernels::Elem elem)
      : Op(std::move(name), block), cols_(cols), elem_(elem) {}

  std::vector<OutputSpec> outputs() const override { return {{cols_, elem_}}; }
  bool cheap() const override { return true; }
  bool passes_gradient() const override { return true; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::elementwise);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::add(c.mat(i.in[0]), c.mat(i.in[1]), cols_, c.out(i.out[0]), r0, r1);
    });
  }
  // Only where gradients of several uses meet: sums residual and d_out into d_in.
  void backward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::elementwise);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::add(c.mat(i.d_out[0]), c.mat(i.residual[0]), cols_, c.out(i.d_in[0]), r0, r1);
    });
  }

 private:
  int64_t cols_;
  kernels::Elem elem_;
};

}  // namespace

std::unique_ptr<Op> make_add(std::string name, int block, int64_t cols, kernels::Elem elem) {
  return std::make_unique<Add>(std::move(name), block, cols, elem);
}

}  // namespace loongforge::graph
