#include "train/engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

struct Summed {
  graph::RunStats stats;
  std::vector<float> gradients;
};

class Bench {
 public:
  Bench(const char* quantize, quant::RunPrecision format) : model_("llama3", quantize), pool_(2) {
    run_.recipe.precision = format;
    params_ = load_tiny(model_, run_, pool_);
    executor_ = std::make_unique<graph::Executor>(graph::make_plan(model_.reader().model(), *params_, plan_for(run_)), *params_, pool_);
  }
  Summed sum(const std::vector<graph::Batch>& batches, int64_t lanes) {
    train::Engine engine(*executor_, *params_, pool_, lanes);
    const auto r = engine.step(
        static_cast<int64_t>(batches.size()), [&](int64_t i) -> const graph::Batch& { return batches[static_cast<size_t>(i)]; },
        [](int64_t) -> const graph::MaskSource* { return nullptr; }, nullptr);
    return {r.stats, std::vector<float>(r.gradients, r.gradients + params_->trainable_floats())};
  }
  std::vector<float> one(const graph::Batch& batch) {
    std::vector<float> g(static_cast<size_t>(params_->trainable_floats()), 0.0f);
    graph::RunRequest request;
    request.gradients = g.data();
    executor_->run(batch, request);
    return g;
  }
  const graph::Parameters& params() const { return *params_; }

 private:
  TinyModel model_;
  ThreadPool pool_;
  TinyRun run_;
  std::unique_ptr<graph::Parameters> params_;
  std::unique_ptr<graph::Executor> executor_;
};

std::vector<float> plus(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

bool equal(const graph::Parameters& params, const std::vector<float>& a, const std::vector<float>& b) {
  for (const graph::Trainable& t : params.trainables())
    if (std::memcmp(a.data() + t.offset, b.data() + t.offset, static_cast<size_t>(t.size()) * 4) != 0) return false;
  return true;
}

}  // namespace

TEST_CASE("gradients are summed by lane, then by one fixed tree") {
  Bench bench("fp8", quant::RunPrecision::kFp8);
  std::vector<graph::Batch> batches;
  std::vector<std::vector<float>> g;
  for (uint32_t i = 0; i < 6; ++i) {
    batches.push_back(random_batch({20 + i, 9}, 512, i + 1));
    g.push_back(bench.one(batches.back()));
  }
  // Four lanes: (0, 4), (1, 5), 2, 3.
  const auto lane0 = plus(g[0], g[4]), lane1 = plus(g[1], g[5]);
  CHECK(equal(bench.params(), bench.sum(batches, 4).gradients, plus(plus(lane0, lane1), plus(g[2], g[3]))));
  // Eight lanes, two of them empty.
  CHECK(equal(bench.params(), bench.sum(batches, 8).gradients,
              plus(plus(plus(g[0], g[1]), plus(g[2], g[3])), plus(g[4], g[5]))));
  // One lane: in order.
  std::vector<float> line = g[0];
  for (size_t i = 1; i < 6; ++i) line = plus(line, g[i]);
  CHECK(equal(bench.params(), bench.sum(batches, 1).gradients, line));
}

TEST_CASE("how samples are cut into micro-batches does not change loss and gradients beyond 1e-5 in fp32") {
  Bench bench("fp32", quant::RunPrecision::kFp32);
  std::vector<graph::Batch> ones;
  graph::Batch all;
  std::vector<graph::Batch> pairs(8);
  for (uint32_t i = 0; i < 16; ++i) {
    const graph::Batch b = random_batch({7 + 5 * static_cast<int64_t>(i)}, 512, i + 3);
    ones.push_back(b);
    for (graph::Batch* to : {&all, &pairs[i / 2]}) {
      to->documents.push_back({to->tokens(), b.tokens()});
      to->ids.insert(to->ids.end(), b.ids.begin(), b.ids.end());
      to->targets.insert(to->targets.end(), b.targets.begin(), b.targets.end());
      to->positions.insert(to->positions.end(), b.positions.begin(), b.positions.end());
      to->valid += b.valid;
    }
  }
  const Summed whole = bench.sum({all}, 8);
  for (const auto* batches : {&ones, &pairs}) {
    const Summed cut = bench.sum(*batches, 8);
    CHECK(cut.stats.valid == whole.stats.valid);
    CHECK(cut.stats.loss_sum == doctest::Approx(whole.stats.loss_sum).epsilon(1e-6));
    double diff = 0, norm = 0;
    for (const graph::Trainable& t : bench.params().trainables())
      for (int64_t i = t.offset; i < t.offset + t.size(); ++i) {
        const double a = cut.gradients[static_cast<size_t>(i)], b = whole.gradients[static_cast<size_t>(i)];
        diff += (a - b) * (a - b);
        norm += b * b;
      }
    CHECK(std::sqrt(diff / norm) < 1e-5);
  }
}

TEST_CASE("a step holds no more buffers than it announces") {
  Bench bench("fp8", quant::RunPrecision::kFp8);
  ThreadPool pool(1);
  TinyModel model("llama2", "fp8");
  TinyRun run;
  auto params = load_tiny(model, run, pool);
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan_for(run)), *params, pool);
  CHECK(train::Engine(executor, *params, pool, 1).buffers_needed(1) == 1);
  CHECK(train::Engine(executor, *params, pool, 1).buffers_needed(9) == 2);
  CHECK(train::Engine(executor, *params, pool, 8).buffers_needed(8) == 4);
  CHECK(train::Engine(executor, *params, pool, 8).buffers_needed(2) == 2);
}
