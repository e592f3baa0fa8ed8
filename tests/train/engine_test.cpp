#include "train/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
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
    executor_ = std::make_unique<graph::Executor>(
        graph::make_plan(model_.reader().model(), *params_, plan_for(run_)), *params_, pool_);
  }
  Summed sum(const std::vector<graph::Batch>& batches, int64_t lanes) {
    train::Engine engine(*executor_, *params_, pool_, lanes);
    const auto r = engine.step(
        static_cast<int64_t>(batches.size()),
        [&](int64_t i) -> const graph::Batch& { return batches[static_cast<size_t>(i)]; },
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
  std::vector<float> row_losses(const graph::Batch& batch) {
    std::vector<float> losses, gradients(static_cast<size_t>(params_->trainable_floats()));
    graph::RunRequest request;
    request.gradients = gradients.data();
    request.row_loss = &losses;
    executor_->run(batch, request);
    return losses;
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

// As numbers: 0 and -0 are one.
bool equal_values(const graph::Parameters& params, const std::vector<float>& a,
                  const std::vector<float>& b) {
  for (const graph::Trainable& t : params.trainables())
    for (int64_t i = t.offset; i < t.offset + t.size(); ++i)
      if (a[static_cast<size_t>(i)] != b[static_cast<size_t>(i)]) return false;
  return true;
}

bool equal(const graph::Parameters& params, const std::vector<float>& a,
           const std::vector<float>& b) {
  for (const graph::Trainable& t : params.trainables())
    if (std::memcmp(a.data() + t.offset, b.data() + t.offset, static_cast<size_t>(t.size()) * 4) !=
        0)
      return false;
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
  CHECK(equal(bench.params(), bench.sum(batches, 4).gradients,
              plus(plus(lane0, lane1), plus(g[2], g[3]))));
  // Eight lanes, two of them empty.
  CHECK(equal(bench.params(), bench.sum(batches, 8).gradients,
              plus(plus(plus(g[0], g[1]), plus(g[2], g[3])), plus(g[4], g[5]))));
  // One lane: in order.
  std::vector<float> line = g[0];
  for (size_t i = 1; i < 6; ++i) line = plus(line, g[i]);
  CHECK(equal(bench.params(), bench.sum(batches, 1).gradients, line));
}

namespace {

void append(const graph::Batch& b, graph::Batch* to) {
  for (const graph::Document& d : b.documents)
    to->documents.push_back({to->tokens() + d.row, d.length});
  to->ids.insert(to->ids.end(), b.ids.begin(), b.ids.end());
  to->targets.insert(to->targets.end(), b.targets.begin(), b.targets.end());
  to->positions.insert(to->positions.end(), b.positions.begin(), b.positions.end());
  to->valid += b.valid;
}

// A row that nothing is learnt from: what padding is here.
graph::Batch untrained(int64_t length) {
  graph::Batch b = random_batch({length}, 512, 77);
  std::fill(b.targets.begin(), b.targets.end(), -1);
  b.valid = 0;
  return b;
}

// |a * scale_a - b * scale_b| / |b * scale_b| over all trained arrays, in float64.
double distance(const graph::Parameters& params, const Summed& a, const Summed& b) {
  const double scale_a = 1.0 / static_cast<double>(a.stats.valid),
               scale_b = 1.0 / static_cast<double>(b.stats.valid);
  double diff = 0, norm = 0;
  for (const graph::Trainable& t : params.trainables())
    for (int64_t i = t.offset; i < t.offset + t.size(); ++i) {
      const double x = a.gradients[static_cast<size_t>(i)] * scale_a,
                   y = b.gradients[static_cast<size_t>(i)] * scale_b;
      diff += (x - y) * (x - y);
      norm += y * y;
    }
  return std::sqrt(diff / norm);
}

double mean(const Summed& s) { return s.stats.loss_sum / static_cast<double>(s.stats.valid); }

}  // namespace

TEST_CASE(
    "how samples are cut into micro-batches does not change loss and gradients beyond 1e-5 in "
    "fp32") {
  Bench bench("fp32", quant::RunPrecision::kFp32);
  std::vector<graph::Batch> ones, pairs(8), halves(2);  // 16 x 1, 8 x 2, 2 x 8, of unequal lengths
  graph::Batch all;
  double loss_sum = 0;  // row by row, in float64
  int64_t valid = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    ones.push_back(random_batch({7 + 5 * static_cast<int64_t>(i)}, 512, i + 3));
    for (graph::Batch* to : {&all, &pairs[i / 2], &halves[i / 8]}) append(ones.back(), to);
    for (float loss : bench.row_losses(ones.back())) loss_sum += static_cast<double>(loss);
    valid += ones.back().valid;
  }
  const Summed whole = bench.sum({all}, 8);
  CHECK(whole.stats.valid == valid);
  CHECK(std::abs(mean(whole) / (loss_sum / static_cast<double>(valid)) - 1) < 1e-6);
  for (const int64_t lanes : {1, 8})
    for (const auto* batches : {&ones, &pairs, &halves}) {
      const Summed cut = bench.sum(*batches, lanes);
      CHECK(cut.stats.valid == valid);
      CHECK(std::abs(mean(cut) / mean(whole) - 1) < 1e-5);
      CHECK(distance(bench.params(), cut, whole) < 1e-5);
    }
}

TEST_CASE(
    "sums 2.0 over 10 tokens and 3.0 over 5 are a loss of 0.3333: tokens count, not "
    "micro-batches") {
  train::Engine::Result r;
  r.stats.loss_sum = 2.0;
  r.stats.valid = 10;
  graph::RunStats second;
  second.loss_sum = 3.0;
  second.valid = 5;
  r.stats.add(second);
  CHECK(r.loss() == doctest::Approx(5.0 / 15.0).epsilon(1e-15));
  CHECK(r.scale() == doctest::Approx(1.0 / 15.0).epsilon(1e-15));

  // The same with real ones, of 10 and 5 trained tokens: the gradient is (g1 + g2) / 15.
  Bench bench("fp32", quant::RunPrecision::kFp32);
  const graph::Batch ten = random_batch({20}, 512, 1), five = random_batch({10}, 512, 2);
  REQUIRE(ten.valid == 10);
  REQUIRE(five.valid == 5);
  const Summed a = bench.sum({ten}, 1), b = bench.sum({five}, 1), both = bench.sum({ten, five}, 1);
  CHECK(mean(both) == doctest::Approx((a.stats.loss_sum + b.stats.loss_sum) / 15).epsilon(1e-12));
  CHECK(std::abs(mean(both) - (mean(a) + mean(b)) / 2) >
        1e-4);  // what a mean of means would give is another number
  Summed expected = a;
  expected.stats.valid = 15;
  expected.gradients = plus(a.gradients, b.gradients);
  CHECK(distance(bench.params(), both, expected) < 1e-6);
}

TEST_CASE("a step with fewer micro-batches than others is weighted by its own tokens") {
  Bench bench("fp32", quant::RunPrecision::kFp32);
  std::vector<graph::Batch> three;  // of an accumulation of 8
  graph::Batch all;
  for (uint32_t i = 0; i < 3; ++i) {
    three.push_back(random_batch({11 + 30 * static_cast<int64_t>(i)}, 512, i + 40));
    append(three.back(), &all);
  }
  const Summed last = bench.sum(three, 8), whole = bench.sum({all}, 8);
  CHECK(last.stats.valid == all.valid);
  CHECK(std::abs(mean(last) / mean(whole) - 1) < 1e-5);
  CHECK(distance(bench.params(), last, whole) < 1e-5);
}

TEST_CASE("a row of padding only changes nothing") {
  for (const auto& [quantize, format] :
       {std::pair{"fp32", quant::RunPrecision::kFp32}, {"fp8", quant::RunPrecision::kFp8}}) {
    CAPTURE(quantize);
    Bench bench(quantize, format);
    const graph::Batch real = random_batch({37, 12}, 512, 5), padding = untrained(29);
    const Summed alone = bench.sum({real}, 4);
    graph::Batch after = real, before = padding;
    append(padding, &after);
    append(real, &before);
    // Behind the others, or as a micro-batch of its own: to the bit.
    for (const Summed& with : {bench.sum({after}, 4), bench.sum({real, padding}, 4),
                               bench.sum({padding, real}, 4), bench.sum({real, padding}, 1)}) {
      CHECK(with.stats.valid == alone.stats.valid);
      CHECK(with.stats.loss_sum == alone.stats.loss_sum);
      CHECK(equal_values(bench.params(), with.gradients, alone.gradients));
    }
    // In front of them blocks of sums begin elsewhere.
    const Summed with = bench.sum({before}, 4);
    CHECK(with.stats.valid == alone.stats.valid);
    CHECK(std::abs(mean(with) / mean(alone) - 1) < 1e-5);
    CHECK(distance(bench.params(), with, alone) <
          (format == quant::RunPrecision::kFp32 ? 1e-5 : 2e-3));
  }
}

TEST_CASE("a step holds no more buffers than it announces") {
  Bench bench("fp8", quant::RunPrecision::kFp8);
  ThreadPool pool(1);
  TinyModel model("llama2", "fp8");
  TinyRun run;
  auto params = load_tiny(model, run, pool);
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan_for(run)),
                           *params, pool);
  CHECK(train::Engine(executor, *params, pool, 1).buffers_needed(1) == 1);
  CHECK(train::Engine(executor, *params, pool, 1).buffers_needed(9) == 2);
  CHECK(train::Engine(executor, *params, pool, 8).buffers_needed(8) == 4);
  CHECK(train::Engine(executor, *params, pool, 8).buffers_needed(2) == 2);
}
