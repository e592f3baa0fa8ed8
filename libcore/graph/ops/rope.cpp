// rope: rotates query and key heads by their positions, in place; backward rotates the gradients
// back.
#include <algorithm>

#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

class Rope final : public Op {
 public:
  Rope(std::string name, int block, RopeSpec spec)
      : Op(std::move(name), block), s_(std::move(spec)) {}

  std::vector<OutputSpec> outputs() const override {
    std::vector<OutputSpec> specs;
    for (int64_t heads : s_.heads) specs.push_back({heads * s_.head_dim, s_.elem});
    return specs;
  }
  bool in_place() const override { return true; }

  void forward(RunContext& c, const Instruction& i) const override { rotate(c, i.out, false); }
  void backward(RunContext& c, const Instruction& i) const override { rotate(c, i.d_out, true); }

 private:
  void rotate(RunContext& c, const std::vector<View>& views, bool inverse) const {
    Timed timed(c, &Profile::elementwise);
    int64_t longest = 0;
    for (const Document& d : c.batch.documents) longest = std::max(longest, d.length);
    if (c.cache != nullptr) longest += c.cache->length();
    const std::shared_ptr<const RopeTable> table = s_.tables->of(longest);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      for (size_t v = 0; v < views.size(); ++v)
        kernels::rope(c.mat(views[v]), c.out(views[v]), s_.heads[v], s_.head_dim,
                      c.batch.positions.data(), table->cos.data(), table->sin.data(), inverse, r0,
                      r1);
    });
  }

  RopeSpec s_;
};

}  // namespace

std::unique_ptr<Op> make_rope(std::string name, int block, const RopeSpec& spec) {
  return std::make_unique<Rope>(std::move(name), block, spec);
}

}  // namespace loongforge::graph
