// swiglu: y = silu(gate) * up.
#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

class SwiGlu final : public Op {
 public:
  SwiGlu(std::string name, int block, int64_t cols, kernels::Elem elem)
      : Op(std::move(name), block), cols_(cols), elem_(elem) {}

  std::vector<OutputSpec> outputs() const override { return {{cols_, elem_}}; }
  Needs backward_needs() const override { return {{0, 1}, {}, {}}; }
  bool cheap() const override { return true; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::elementwise);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::swiglu_forward(c.mat(i.in[0]), c.mat(i.in[1]), cols_, c.out(i.out[0]), r0, r1);
    });
  }

  void backward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::elementwise);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::swiglu_backward(c.mat(i.d_out[0]), c.mat(i.in[0]), c.mat(i.in[1]), cols_,
                               c.out(i.d_in[0]), c.out(i.d_in[1]), r0, r1);
    });
  }

 private:
  int64_t cols_;
  kernels::Elem elem_;
};

}  // namespace

std::unique_ptr<Op> make_swiglu(std::string name, int block, int64_t cols, kernels::Elem elem) {
  return std::make_unique<SwiGlu>(std::move(name), block, cols, elem);
}

}  // namespace loongforge::graph
