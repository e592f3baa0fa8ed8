// step-bench MODEL [options]: --help lists them. --scaling takes every step with one thread as
// well, by turns, and prints how many times as fast the many are; --cost measures what adaptive
// biases or statistics add to a step. Times whole training steps (one micro-batch of rows x length
// random tokens, all trained on) and prints where the time goes and the model FLOP utilisation: 4 N
// T (LoRA) or 6 N T (full), N = linear parameters with the head, plus 3 x the causal attention
// products, over the peak of the multiply-add that the GEMM uses, measured in the same run, round
// by round.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "bench.h"
#include "bench/options.h"
#include "cli/run.h"
#include "graph/executor.h"
#include "graph/validate.h"
#include "ir/reader.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "topo/machine.h"
#include "train/engine.h"

using namespace loongforge;

namespace {

struct Options {
  std::string model, isa, type = "lora", precision = "e4m3", activations = "saved",
                          scales = "block", cost;
  int64_t rows = 4, length = 512;
  int threads = 0, rounds = 3;
  bool checkpointing = false, scaling = false;
};

Options parse(const std::vector<std::string>& words) {
  Options o;
  bench::CommandLine("step-bench")
      .word("MODEL", &o.model)
      .number("--rows", &o.rows)
      .number("--length", &o.length)
      .choice("--type", {"lora", "full"}, &o.type)
      .choice("--precision", {"e4m3", "e5m2", "hybrid", "bf16", "fp32"}, &o.precision)
      .choice("--activations", {"saved", "compute", "off"}, &o.activations)
      .choice("--scales", {"block", "tensor-current", "delayed"}, &o.scales)
      .choice("--cost", {"adaptive", "stats"}, &o.cost)
      .choice("--isa", bench::isa_names(), &o.isa)
      .threads("--threads", &o.threads)
      .number("--rounds", &o.rounds)
      .flag("--checkpointing", &o.checkpointing)
      .flag("--scaling", &o.scaling)
      .parse(words);
  return o;
}

quant::Recipe recipe_of(const Options& o) {
  quant::Recipe recipe;
  recipe.precision = quant::parse_run_precision(o.precision).value();
  recipe.activations = quant::parse_activations(o.activations).value();
  recipe.scales = quant::parse_scale_recipe(o.scales).value();
  return recipe;
}

graph::Batch random_batch(int64_t rows, int64_t length, int64_t vocab) {
  graph::Batch b;
  uint32_t state = 12345;
  for (int64_t r = 0; r < rows; ++r) {
    b.documents.push_back({b.tokens(), length});
    for (int64_t t = 0; t < length; ++t) {
      state = state * 1664525u + 1013904223u;
      b.ids.push_back(static_cast<int32_t>(state % static_cast<uint32_t>(vocab)) * 2);
      b.targets.push_back(static_cast<int32_t>((state >> 7) % static_cast<uint32_t>(vocab)) * 2);
      b.positions.push_back(static_cast<int32_t>(t));
      ++b.valid;
    }
  }
  return b;
}

double attention_flops(const ir::Model& model, int64_t rows, int64_t length) {
  double flops = 0;
  for (const ir::Node& n : model.graph.nodes)
    if (n.op == "attention")
      flops += 2.0 * 2.0 *
               static_cast<double>(n.attrs.at("heads").as_int() * n.attrs.at("head_dim").as_int()) *
               static_cast<double>(rows) * static_cast<double>(length) *
               static_cast<double>(length + 1) / 2.0;
  return flops;
}

// What --fp8_adaptive_bias or --fp8_stats adds to a step: steps without and with it by turns. Both
// add to the time of quantising alone, so that is what is compared; the rest of a step only says
// what share it is.
int cost(const Options& o, graph::Executor* executor, train::Engine* engine,
         const graph::Batch& batch) {
  quant::Recipe recipe = recipe_of(o);
  quant::ScalingState plain(recipe);
  recipe.adaptive_bias = true;
  quant::ScalingState adaptive(recipe);
  const bool stats = o.cost == "stats";
  std::vector<double> without, with, total;
  for (int round = 0; round < 2 * (o.rounds + 1); ++round) {
    const bool on = round % 2 == 1;
    executor->set_scaling(on && !stats ? &adaptive : &plain);
    executor->set_measure_errors(on && stats);
    graph::Profile profile;
    const Stopwatch watch;
    engine->step(
        1, [&](int64_t) -> const graph::Batch& { return batch; },
        [](int64_t) -> const graph::MaskSource* { return nullptr; }, &profile);
    const double seconds = watch.seconds();
    plain.end_step({}, false);
    adaptive.end_step({}, false);
    if (round < 2) continue;
    (on ? with : without).push_back(profile.quantize);
    if (!on) total.push_back(seconds);
  }
  const auto least = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };  // the least disturbed
  std::printf("%s: quantising %.4f s without, %.4f s with, of a step of %.3f s: %.2f %%\n",
              o.cost.c_str(), least(without), least(with), least(total),
              100.0 * (least(with) - least(without)) / least(total));
  return 0;
}

// One line: the step's time, its utilisation, the seconds of each kind of work and the share of
// what is neither a product nor attention.
void print_step(const char* label, double total, double flops, double peak, const graph::Profile& p,
                double update) {
  const double products = p.gemm + p.adapter_gemm + p.head_gemm;
  const double others = p.loss + p.norm + p.quantize + p.elementwise + update;
  const double rest = total - products - p.attention - others;
  std::printf(
      "%-11s %.3f s  MFU %.3f of %.0f GF/s | gemm %.3f (base %.3f, LoRA %.3f, head %.3f) attention "
      "%.3f | loss %.3f norm %.3f "
      "quantise %.3f elementwise %.3f optimizer %.3f rest %.3f: %.1f %% | RSS %.0f MB\n",
      label, total, flops / total / peak, peak / 1e9, products, p.gemm, p.adapter_gemm, p.head_gemm,
      p.attention, p.loss, p.norm, p.quantize, p.elementwise, update, rest,
      100 * (others + rest) / total, static_cast<double>(process_memory().peak_resident) / 1e6);
}

// What takes a step with a number of threads of its own; several share parameters and optimizer.
struct Runner {
  Runner(const Options& o, const ir::Model& model, graph::Parameters* params, int threads)
      : pool(threads),
        executor(graph::make_plan(model, *params, plan_options(o)), *params, pool),
        engine(executor, *params, pool, 1) {}

  static graph::PlanOptions plan_options(const Options& o) {
    graph::PlanOptions plan;
    plan.recipe = recipe_of(o);
    plan.max_positions = o.length;
    plan.gradient_checkpointing = o.checkpointing;
    return plan;
  }
  double peak(kernels::Precision operands) {
    double best = 0;
    for (bench::FmaKind kind : bench::fma_kinds(kernels::active_isa(), operands))
      for (int window = 0; window < 5; ++window)
        best = std::max(best, bench::fma_peak(pool, kind) * 1e9);
    return best;
  }

  ThreadPool pool;
  graph::Executor executor;
  train::Engine engine;
};

// One step; its time, the optimizer's in *update.
double take_step(Runner* r, const graph::Batch& batch,
                 const std::vector<optim::ParameterView>& views, graph::Parameters* params,
                 optim::AdamW* adam, graph::Profile* profile, double* update) {
  const Stopwatch watch;
  const train::Engine::Result result = r->engine.step(
      1, [&](int64_t) -> const graph::Batch& { return batch; },
      [](int64_t) -> const graph::MaskSource* { return nullptr; }, profile);
  const Stopwatch optimizer;
  const optim::GradientNorm norm = optim::gradient_norm(views, result.gradients, 1e-3, r->pool);
  adam->step(params->masters(), result.gradients, 1e-5, 1e-3 * optim::clip_factor(norm.norm, 1.0),
             r->pool);
  params->refresh(r->pool, nullptr);
  *update = optimizer.seconds();
  return watch.seconds();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

int run(const Options& o) {
  const topo::Machine machine = topo::read_machine();
  kernels::gemm_set_cache(static_cast<int64_t>(machine.l2_bytes) / std::max(1, machine.l2_cores));
  const int threads = o.threads > 0 ? o.threads : machine.default_threads();
  ThreadPool loader(threads);
  const ir::Reader reader(o.model);
  const int64_t vocab = graph::validate(reader.model(), o.model);
  graph::ParameterOptions p;
  p.recipe = recipe_of(o);
  p.train_all = o.type == "full";
  p.lora = !p.train_all;
  auto params = graph::Parameters::load(reader, p, loader);
  std::vector<std::unique_ptr<Runner>> runners;
  runners.push_back(std::make_unique<Runner>(o, reader.model(), params.get(), threads));
  if (o.scaling && threads > 1)
    runners.push_back(std::make_unique<Runner>(o, reader.model(), params.get(), 1));
  std::vector<optim::ParameterView> views;
  for (const graph::Trainable& t : params->trainables())
    views.push_back({t.name, t.rows, t.cols, t.offset, t.decay});
  optim::AdamW adam(views, {});
  const graph::Batch batch = random_batch(o.rows, o.length, vocab);
  const double flops = (p.train_all ? 6.0 : 4.0) *
                           static_cast<double>(params->linear_parameter_count()) *
                           static_cast<double>(batch.tokens()) +
                       3.0 * attention_flops(reader.model(), o.rows, o.length);
  std::printf("%s %s %s, %lld x %lld tokens, %d threads, %s: %.3f TFLOP a step\n", o.model.c_str(),
              o.type.c_str(), o.precision.c_str(), static_cast<long long>(o.rows),
              static_cast<long long>(o.length), threads, kernels::isa_name(kernels::active_isa()),
              flops / 1e12);
  if (!o.cost.empty()) return cost(o, &runners[0]->executor, &runners[0]->engine, batch);
  std::vector<double> utilisation[2], gain;
  for (int round = 0; round < o.rounds + 1; ++round) {  // the first one warms up
    double seconds[2] = {};
    for (size_t i = 0; i < runners.size(); ++i) {
      Runner& r = *runners[i];
      const double peak = r.peak(p.recipe.operands());
      graph::Profile profile;
      double update = 0;
      seconds[i] = take_step(&r, batch, views, params.get(), &adam, &profile, &update);
      const std::string label =
          (round == 0 ? "warm-up, " : "step, ") + std::to_string(r.pool.threads()) + "T";
      print_step(label.c_str(), seconds[i], flops, peak, profile, update);
      if (round > 0) utilisation[i].push_back(flops / seconds[i] / peak);
    }
    if (round > 0 && runners.size() == 2) gain.push_back(seconds[1] / seconds[0]);
  }
  for (size_t i = 0; i < runners.size(); ++i)
    std::printf("%d threads: model FLOP utilisation %.3f (median of %d; best %.3f)\n",
                runners[i]->pool.threads(), median(utilisation[i]), o.rounds,
                *std::max_element(utilisation[i].begin(), utilisation[i].end()));
  if (!gain.empty())
    std::printf("%d threads are %.2f times as fast as one (median; best %.2f)\n", threads,
                median(gain), *std::max_element(gain.begin(), gain.end()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main("step-bench", argc, argv, [](const std::vector<std::string>& words) {
    const Options o = parse(words);
    cli::apply_isa(o.isa.empty() ? std::getenv("LOONGFORGE_ISA") : o.isa.c_str());
    return run(o);
  });
}
