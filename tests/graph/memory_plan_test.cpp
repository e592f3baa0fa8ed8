#include <doctest/doctest.h>

#include "graph/plan.h"
#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

struct Life {
  size_t first = SIZE_MAX, last = 0;
};

}  // namespace

TEST_CASE("buffers that live at the same time never share memory") {
  const TinyModel model("llama3", "fp8");
  ThreadPool pool(1);
  for (bool full : {true, false}) {
    for (bool checkpointing : {true, false}) {
      TinyRun run;
      run.full = full;
      run.plan.gradient_checkpointing = checkpointing;
      auto params = load_tiny(model, run, pool);
      const graph::Plan plan = graph::make_plan(model.reader().model(), *params, plan_for(run));
      std::vector<Life> lives(plan.buffers.size());
      for (size_t n = 0; n < plan.program.size(); ++n) {
        const graph::Instruction& i = plan.program[n];
        for (const auto* views : {&i.in, &i.out, &i.aux, &i.d_out, &i.d_in, &i.residual, &i.temp})
          for (const graph::View& v : *views) {
            if (!v.valid()) continue;
            Life& life = lives[static_cast<size_t>(v.buffer)];
            life.first = std::min(life.first, n);
            life.last = std::max(life.last, n);
          }
      }
      for (int64_t tokens : {1, 63, 700}) {
        const graph::MemoryLayout layout = graph::lay_out(plan, tokens);
        auto end = [&](size_t b) {
          const graph::BufferSpec& s = plan.buffers[b];
          return layout.offsets[b] +
                 static_cast<size_t>((tokens * s.cols + s.fixed) * kernels::elem_bytes(s.elem));
        };
        for (size_t a = 0; a < lives.size(); ++a) {
          REQUIRE(end(a) <= layout.total);
          for (size_t b = a + 1; b < lives.size(); ++b) {
            const bool together =
                lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
            if (together) REQUIRE((end(a) <= layout.offsets[b] || end(b) <= layout.offsets[a]));
          }
        }
      }
    }
  }
}
