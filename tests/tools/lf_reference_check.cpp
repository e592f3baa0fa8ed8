// lf-reference-check MODEL REFERENCE.json [--precision fp32|bf16|fp8]: a converted real model
// against the reference implementation's results on texts (mean negative log-likelihood) and greedy
// continuations of chat prompts. Exit 0 within the bounds (fp32: 1e-3 and equal continuations;
// bf16, fp8: as tests/README.md states), 1 beyond.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/pool.h"
#include "data/tokenizer.h"
#include "generate/generate.h"
#include "graph/executor.h"
#include "graph/validate.h"
#include "ir/reader.h"
#include "support/json.h"

using namespace loongforge;

namespace {

std::vector<int32_t> ids_of(const support::Json& json) {
  std::vector<int32_t> ids;
  for (const support::Json& id : json.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

graph::Batch text_batch(const std::vector<int32_t>& ids) {
  graph::Batch b;
  b.documents.push_back({0, static_cast<int64_t>(ids.size())});
  for (size_t t = 0; t < ids.size(); ++t) {
    b.ids.push_back(ids[t] * 2);
    b.targets.push_back(t + 1 < ids.size() ? ids[t + 1] * 2 : -1);
    b.positions.push_back(static_cast<int32_t>(t));
  }
  b.valid = static_cast<int64_t>(ids.size()) - 1;
  return b;
}

int run(const std::string& model, const std::string& reference, const std::string& precision) {
  const bool exact = precision == "fp32";
  const double bound = exact ? 1e-3 : precision == "bf16" ? 0.02 : 0.075;
  ThreadPool pool(2);
  const ir::Reader reader(model);
  const int64_t vocab = graph::validate(reader.model(), model);
  graph::ParameterOptions options;
  options.recipe.precision = exact                 ? quant::RunPrecision::kFp32
                             : precision == "bf16" ? quant::RunPrecision::kBf16
                                                   : quant::RunPrecision::kFp8;
  auto params = graph::Parameters::load(reader, options, pool);
  graph::PlanOptions plan;
  plan.mode = graph::PlanMode::kEval;
  plan.recipe = options.recipe;
  plan.max_positions = 2048;
  graph::Executor eval(graph::make_plan(reader.model(), *params, plan), *params, pool);
  const support::Json golden = support::read_json(reference);
  bool ok = true;
  double sum = 0, want_sum = 0;
  for (const support::Json& text : golden.at("texts").as_array()) {
    const graph::RunStats stats = eval.run(text_batch(ids_of(text.at("ids"))), {});
    const double nll = stats.loss_sum / static_cast<double>(stats.valid),
                 want = text.at("mean_nll").as_double();
    const bool good = std::fabs(nll - want) <= bound;
    ok = ok && good;
    sum += nll;
    want_sum += want;
    std::printf("text of %4zu tokens: mean nll %.6f, reference %.6f, difference %+.2e %s\n",
                text.at("ids").as_array().size(), nll, want, nll - want, good ? "ok" : "BEYOND");
  }
  std::printf("mean of all: %.6f, reference %.6f (%+.3f %%)\n",
              sum / static_cast<double>(golden.at("texts").as_array().size()),
              want_sum / static_cast<double>(golden.at("texts").as_array().size()),
              100 * (sum / want_sum - 1));
  plan.mode = graph::PlanMode::kGenerate;
  graph::Executor generate(graph::make_plan(reader.model(), *params, plan), *params, pool);
  const data::Tokenizer tokenizer = data::Tokenizer::load(model);
  for (const support::Json& g : golden.at("greedy").as_array()) {
    const std::vector<int32_t> want = ids_of(g.at("ids"));
    generate::GenerateOptions o;
    o.max_new_tokens = static_cast<int64_t>(want.size());
    const std::vector<int32_t> got = generate::generate_tokens(
        generate, vocab, tokenizer.encode(g.at("rendered").as_string(), false), o);
    size_t same = 0;
    while (same < want.size() && same < got.size() && want[same] == got[same]) ++same;
    const bool equal = got == want;
    if (exact) ok = ok && equal;
    std::printf("greedy \"%s\": %zu of %zu tokens equal %s\n", g.at("prompt").as_string().c_str(),
                same, want.size(),
                equal   ? "ok"
                : exact ? "DIFFERENT"
                        : "(free to differ)");
  }
  std::printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  std::string precision = "fp32";
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--precision" && i + 1 < argc)
      precision = argv[++i];
    else
      names.push_back(argv[i]);
  }
  if (names.size() != 2) {
    std::fprintf(stderr,
                 "usage: lf-reference-check MODEL REFERENCE.json [--precision fp32|bf16|fp8]\n");
    return 2;
  }
  try {
    return run(names[0], names[1], precision);
  } catch (const Error& e) {
    std::fprintf(stderr, "lf-reference-check: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
