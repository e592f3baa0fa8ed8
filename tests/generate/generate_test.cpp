#include "generate/generate.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/error.h"
#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

TEST_CASE("a generated token's logits have the bits of a full forward") {
  for (const char* quantize : {"fp8", "fp32"}) {
    const TinyModel model("llama3", quantize);
    TinyRun run;
    run.full = false;
    if (std::string(quantize) == "fp32") run.format = quant::RunPrecision::kFp32;
    ThreadPool pool(2);
    auto params = load_tiny(model, run, pool);
    graph::PlanOptions plan = plan_for(run);
    plan.mode = graph::PlanMode::kGenerate;
    graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params, pool);
    const graph::Batch whole = random_batch({60}, 512);
    const TinyResult full = run_tiny(model, run, whole);
    graph::KvCache cache(60, run.format == quant::RunPrecision::kFp32 ? kernels::Elem::kF32 : kernels::Elem::kBf16);
    std::vector<float> logits(512);
    int64_t at = 0;
    for (int64_t feed : {17, 1, 1, 1, 20, 1, 19}) {
      graph::Batch part;
      part.ids.assign(whole.ids.begin() + at, whole.ids.begin() + at + feed);
      part.targets.assign(static_cast<size_t>(feed), -1);
      for (int64_t t = 0; t < feed; ++t) part.positions.push_back(static_cast<int32_t>(at + t));
      part.documents = {{0, feed}};
      graph::RunRequest request;
      request.cache = &cache;
      request.logits = logits.data();
      executor.run(part, request);
      at += feed;
      CHECK(std::memcmp(logits.data(), full.logits.data() + (at - 1) * 512, 512 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("generation stops at a stop token and at the limit") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.full = false;
  run.format = quant::RunPrecision::kFp32;
  ThreadPool pool(1);
  auto params = load_tiny(model, run, pool);
  graph::PlanOptions plan = plan_for(run);
  plan.mode = graph::PlanMode::kGenerate;
  const int64_t vocab = params->weight("lm_head.weight").packed.n;
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params, pool);
  const std::vector<int32_t> prompt = {3, 9, 27};
  generate::GenerateOptions o;
  o.max_new_tokens = 12;
  const std::vector<int32_t> free = generate::generate_greedy(executor, vocab, prompt, o);
  CHECK(free.size() == 12);
  o.stop_ids = {free[4]};
  const std::vector<int32_t> stopped = generate::generate_greedy(executor, vocab, prompt, o);
  REQUIRE(!stopped.empty());
  CHECK(stopped.back() == free[4]);
  CHECK(stopped.size() <= 5);
  CHECK_THROWS_AS(generate::generate_greedy(executor, vocab, {}, o), Error);
}
