#include "generate/generate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

// Feeds a document in pieces through a KV cache: the last token's logits of each have the bits of
// the full forward. Then generates greedily, and each token is the largest logit of the full
// forward over what came before.
void check_generation(const std::string& name, const char* quantize,
                      const std::vector<int64_t>& pieces) {
  CAPTURE(name);
  CAPTURE(quantize);
  const TinyModel model(name, quantize);
  TinyRun run;
  run.full = false;
  if (std::string(quantize) == "fp32") run.recipe.precision = quant::RunPrecision::kFp32;
  ThreadPool pool(2);
  auto params = load_tiny(model, run, pool);
  graph::PlanOptions plan = plan_for(run);
  plan.mode = graph::PlanMode::kGenerate;
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params, pool);
  const int64_t vocab = vocab_of(model),
                length = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
  const graph::Batch whole = random_batch({length}, vocab);
  const TinyResult full = run_tiny(model, run, whole);
  graph::KvCache cache(length, run.recipe.precision == quant::RunPrecision::kFp32
                                   ? kernels::Elem::kF32
                                   : kernels::Elem::kBf16);
  std::vector<float> logits(static_cast<size_t>(vocab));
  int64_t at = 0;
  for (int64_t feed : pieces) {
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
    CHECK(std::memcmp(logits.data(), full.logits.data() + (at - 1) * vocab,
                      logits.size() * sizeof(float)) == 0);
  }
  const std::vector<int32_t> prompt = {3, 9, 27};
  generate::GenerateOptions o;
  o.max_new_tokens = length - 3;
  const std::vector<int32_t> tokens = generate::generate_tokens(executor, vocab, prompt, o);
  REQUIRE(tokens.size() == static_cast<size_t>(length - 3));
  graph::Batch again = whole;
  for (size_t t = 0; t < 3; ++t) again.ids[t] = 2 * prompt[t];
  for (size_t t = 0; t < tokens.size(); ++t) again.ids[t + 3] = 2 * tokens[t];
  const TinyResult check = run_tiny(model, run, again);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const float* row = check.logits.data() + static_cast<int64_t>(t + 2) * vocab;
    CHECK(tokens[t] == std::max_element(row, row + vocab) - row);
  }
}

}  // namespace

TEST_CASE("a generated token's logits have the bits of a full forward, in every family") {
  for (const std::string& name : golden_models()) {
    const bool dynamic =
        name == "llama_dynamic";  // the same bits up to the length that the model was made for, 16
    for (const char* quantize : {"fp8", "nf4", "fp32"})
      check_generation(name, quantize,
                       dynamic ? std::vector<int64_t>{5, 1, 1, 6, 3}
                               : std::vector<int64_t>{17, 1, 1, 1, 20, 1, 19});
  }
}

TEST_CASE("generation stops at a stop token and at the limit") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.full = false;
  run.recipe.precision = quant::RunPrecision::kFp32;
  ThreadPool pool(1);
  auto params = load_tiny(model, run, pool);
  graph::PlanOptions plan = plan_for(run);
  plan.mode = graph::PlanMode::kGenerate;
  const int64_t vocab = params->weight("lm_head.weight").packed.n;
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params, pool);
  const std::vector<int32_t> prompt = {3, 9, 27};
  generate::GenerateOptions o;
  o.max_new_tokens = 12;
  const std::vector<int32_t> free = generate::generate_tokens(executor, vocab, prompt, o);
  CHECK(free.size() == 12);
  o.stop_ids = {free[4]};
  const std::vector<int32_t> stopped = generate::generate_tokens(executor, vocab, prompt, o);
  REQUIRE(!stopped.empty());
  CHECK(stopped.back() == free[4]);
  CHECK(stopped.size() <= 5);
  CHECK_THROWS_AS(generate::generate_tokens(executor, vocab, {}, o), Error);
  // Rows of the head beyond the tokenizer's ids are padding: not chosen, whatever their logits are.
  o.stop_ids = {};
  o.vocab_limit = *std::max_element(free.begin(), free.end());
  const std::vector<int32_t> padded = generate::generate_tokens(executor, vocab, prompt, o);
  CHECK(padded.size() == 12);
  CHECK(padded != free);
  for (int32_t id : padded) CHECK(id < o.vocab_limit);
}

TEST_CASE("drawn tokens stay within the limit on the vocabulary, and differ by prompt number") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.full = false;
  run.recipe.precision = quant::RunPrecision::kFp32;
  ThreadPool pool(1);
  auto params = load_tiny(model, run, pool);
  graph::PlanOptions plan = plan_for(run);
  plan.mode = graph::PlanMode::kGenerate;
  const int64_t vocab = params->weight("lm_head.weight").packed.n;
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params, pool);
  const std::vector<int32_t> prompt = {3, 9, 27};
  generate::GenerateOptions o;
  o.max_new_tokens = 100;
  o.vocab_limit = 50;
  o.sampling.temperature = 5;  // nearly even: rows beyond the limit would come up at once
  const std::vector<int32_t> one = generate::generate_tokens(executor, vocab, prompt, o);
  CHECK(one.size() == 100);
  CHECK(std::all_of(one.begin(), one.end(), [](int32_t id) { return id >= 0 && id < 50; }));
  CHECK(generate::generate_tokens(executor, vocab, prompt, o) == one);
  o.prompt_number = 1;
  CHECK(generate::generate_tokens(executor, vocab, prompt, o) != one);
  o.prompt_number = 0;
  o.sampling.seed = 43;
  CHECK(generate::generate_tokens(executor, vocab, prompt, o) != one);
}
