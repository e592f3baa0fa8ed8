// lf-golden-check DIR [--precision P] [--checkpoint NAME] [--recipe] [--verbose]:
// compares our forward, backward, LoRA and ten training steps with a folder of reference results
// laid out like golden/<family> (checkpoint/, golden.safetensors, adapter/,
// golden_lora.safetensors, trajectory.json, trajectory_batches.safetensors). --checkpoint: another
// folder of DIR that holds the same model, whole or in shards, safetensors or torch files
// (checkpoint_bin); it is taken by itself where there is no checkpoint/. With --recipe, the results
// to meet are not the fp32 ones but what an emulation of the precision's roundings gives
// (DIR/recipe_bf16, DIR/recipe_fp8), to bounds that no left-out rounding passes. Exit 0 within the
// bounds, 1 beyond, 2 usage. The bounds and why they are what they are: tests/README.md.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/pool.h"
#include "convert/import.h"
#include "formats/safetensors.h"
#include "graph/executor.h"
#include "graph/parameter_loader.h"
#include "graph/validate.h"
#include "ir/reader.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "support/json.h"
#include "train/adapter_io.h"
#include "train/engine.h"

namespace fs = std::filesystem;
using namespace loongforge;

namespace {

struct Bounds {
  double logits, grad, lora_logits, lora_grad, loss, trajectory_loss, trajectory_norm;
};

struct Setup {
  std::string precision;
  quant::Recipe recipe;
  Bounds bounds;
};

// Against the emulation: what remains is the order of sums, which turns a rounding here and there.
constexpr Bounds kRecipeBounds = {.logits = 3e-3,
                                  .grad = 5e-3,
                                  .lora_logits = 3e-3,
                                  .lora_grad = 5e-3,
                                  .loss = 2e-4,
                                  .trajectory_loss = 8e-3,
                                  .trajectory_norm = 0.015};

// The same for recipes that round X and dY before use: every sum goes through FP8 again, whose
// steps are 16 times those of bf16.
constexpr Bounds kComputeBounds = {.logits = 3e-3,
                                   .grad = 0.012,
                                   .lora_logits = 3e-3,
                                   .lora_grad = 5e-3,
                                   .loss = 2e-4,
                                   .trajectory_loss = 0.045,
                                   .trajectory_norm = 0.035};

Setup setup_of(const std::string& name) {
  Setup setup{name, {}, {0.15, 0.35, 0.20, 0.67, 5e-3, 0.10, 0.10}};
  if (name == "fp8") return setup;
  if (name == "fp32") {
    setup.recipe.precision = quant::RunPrecision::kFp32;
    setup.bounds = {1e-4, 1e-4, 1e-4, 1e-4, 1e-5, 1e-4, 1e-3};
    return setup;
  }
  if (name == "bf16") {
    setup.recipe.precision = quant::RunPrecision::kBf16;
    setup.bounds = {0.02, 0.06, 0.045, 0.14, 1.5e-3, 0.025, 0.03};
    return setup;
  }
  // The other recipes: e5m2, and what FP8 silicon computes (by block, or with one scale a tensor).
  setup.bounds = {0.30, 0.70, 0.40, 0.95, 0.015, 0.20, 0.30};
  if (name == "e5m2") {
    setup.recipe.precision = quant::RunPrecision::kE5M2;
    return setup;
  }
  setup.recipe.activations = quant::Activations::kCompute;
  if (name == "compute") return setup;
  if (name == "compute_one_scale") {
    setup.recipe.scales = quant::ScaleRecipe::kTensorCurrent;
    return setup;
  }
  if (name == "hybrid") {
    setup.recipe.precision = quant::RunPrecision::kHybrid;
    return setup;
  }
  throw_usage("--precision " + name + " is not known",
              "fp32, bf16, fp8, e5m2, compute, compute_one_scale or hybrid");
}

struct Worst {
  double error = 0;
  std::string name;
  void take(double e, const std::string& n) {
    if (!(e <= error)) {
      error = e;
      name = n;
    }
  }
};

class Checker {
 public:
  Checker(fs::path dir, Setup setup, const std::string& checkpoint, bool recipe, bool verbose)
      : dir_(std::move(dir)),
        results_(dir_),
        checkpoint_(dir_ / checkpoint_name(dir_, checkpoint)),
        setup_(std::move(setup)),
        verbose_(verbose),
        pool_(2) {
    if (recipe) {
      results_ = dir_ / ("recipe_" + setup_.precision);
      const bool computes = setup_.recipe.activations == quant::Activations::kCompute;
      setup_.bounds = computes ? kComputeBounds : kRecipeBounds;
    }
    const fs::path base = fs::temp_directory_path() / ("lf-golden-" + std::to_string(::getpid()));
    ir_ = base.string() + "-run";
    master_ir_ = base.string() + "-master";
    // The other recipes make their codes from bf16 as the model is loaded.
    const std::string& p = setup_.precision;
    import(p == "fp8" || p == "fp32" ? p : "bf16", ir_);
    // Full fine-tuning starts from the checkpoint's values, not from what fp8 codes left of them
    // (DESIGN 10).
    import(setup_.precision == "fp32" ? "fp32" : "bf16", master_ir_);
  }
  ~Checker() {
    std::error_code ignored;
    fs::remove_all(ir_, ignored);
    fs::remove_all(master_ir_, ignored);
  }

  bool run() {
    std::printf("%s, %s, %s\n", results_.string().c_str(), checkpoint_.filename().string().c_str(),
                setup_.precision.c_str());
    full();
    if (fs::exists(dir_ / "adapter")) lora();
    if (fs::exists(dir_ / "trajectory.json")) trajectory();
    std::printf("%s\n", ok_ ? "PASSED" : "FAILED");
    return ok_;
  }

 private:
  static std::string checkpoint_name(const fs::path& dir, const std::string& asked) {
    if (!asked.empty()) return asked;
    return fs::exists(dir / "checkpoint") ? "checkpoint" : "checkpoint_bin";
  }

  void import(const std::string& quantize, const fs::path& to) const {
    convert::ImportOptions options;
    options.model_name = dir_.filename().string();
    options.input_path = checkpoint_;
    options.output_path = to;
    options.quantize = quantize;
    options.overwrite = true;
    convert::import_model(options);
  }

  void judge(const char* what, double error, double bound, const std::string& detail = {}) {
    const bool good = error <= bound;
    ok_ = ok_ && good;
    std::printf("  %-34s %10.3e  (bound %.1e) %s %s\n", what, error, bound, good ? "ok" : "BEYOND",
                detail.c_str());
  }

  static std::vector<int64_t> ints(const formats::TensorSource& file, const std::string& name) {
    const formats::StoredTensor& t = file.at(name);
    std::vector<int64_t> values(static_cast<size_t>(t.elements()));
    file.read_range(t, 0, {reinterpret_cast<uint8_t*>(values.data()), values.size() * 8});
    return values;
  }
  static double scalar(const formats::TensorSource& file, const std::string& name) {
    double value = 0;
    file.read_range(file.at(name), 0, {reinterpret_cast<uint8_t*>(&value), 8});
    return value;
  }

  // Rows of padded [rows, width] tensors; labels are unshifted: position t is trained to give
  // labels[t + 1].
  static graph::Batch batch_of(const formats::TensorSource& file, const std::string& prefix,
                               int64_t max_rows) {
    const std::vector<int64_t> ids = ints(file, prefix + "input_ids"),
                               mask = ints(file, prefix + "attention_mask"),
                               labels = ints(file, prefix + "labels");
    const int64_t width = file.at(prefix + "input_ids").shape[1];
    const int64_t rows = std::min(max_rows, file.at(prefix + "input_ids").shape[0]);
    graph::Batch b;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t length = 0;
      while (length < width && mask[static_cast<size_t>(r * width + length)] == 1) ++length;
      b.documents.push_back({b.tokens(), length});
      for (int64_t t = 0; t < length; ++t) {
        const int64_t next = t + 1 < length ? labels[static_cast<size_t>(r * width + t + 1)] : -100;
        b.ids.push_back(static_cast<int32_t>(ids[static_cast<size_t>(r * width + t)] * 2));
        b.targets.push_back(next < 0 ? -1 : static_cast<int32_t>(next * 2));
        b.positions.push_back(static_cast<int32_t>(t));
        b.valid += next >= 0;
      }
    }
    return b;
  }

  static double relative_l2(const std::vector<float>& ours, const std::vector<float>& theirs) {
    double diff = 0, norm = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
      const double d = static_cast<double>(ours[i]) - theirs[i];
      diff += d * d;
      norm += static_cast<double>(theirs[i]) * theirs[i];
    }
    return norm > 0 ? std::sqrt(diff / norm) : std::sqrt(diff);
  }

  std::unique_ptr<graph::Parameters> load(const ir::Reader& reader, bool full,
                                          const graph::LoraOptions* lora) {
    graph::ParameterOptions options;
    options.recipe = setup_.recipe;
    options.train_all = full;
    if (lora != nullptr) {
      options.lora = true;
      options.lora_options = *lora;
    }
    return graph::Parameters::load(reader, options, pool_);
  }
  graph::Executor executor(const ir::Reader& reader, graph::Parameters& params) {
    graph::PlanOptions options;
    options.recipe = setup_.recipe;
    options.max_positions = 4096;
    return graph::Executor(graph::make_plan(reader.model(), params, options), params, pool_);
  }

  void compare_logits(const formats::TensorSource& golden, const graph::Batch& batch,
                      const std::vector<float>& ours, int64_t vocab, double bound) {
    const formats::StoredTensor& t = golden.at("logits");
    const std::vector<float> all = golden.read_f32(t);
    std::vector<float> theirs;
    for (size_t d = 0; d < batch.documents.size(); ++d) {
      const auto* row = all.data() + static_cast<int64_t>(d) * t.shape[1] * vocab;
      theirs.insert(theirs.end(), row, row + batch.documents[d].length * vocab);
    }
    judge("logits, relative L2", relative_l2(ours, theirs), bound);
  }

  void full() {
    const ir::Reader reader(master_ir_);
    const int64_t vocab = graph::validate(reader.model(), master_ir_.string());
    auto params = load(reader, true, nullptr);
    graph::Executor run = executor(reader, *params);
    const formats::SafetensorsFile inputs(dir_ / "golden.safetensors"),
        golden(results_ / "golden.safetensors");
    const graph::Batch batch = batch_of(inputs, "", 1 << 20);
    std::vector<float> gradients(static_cast<size_t>(params->trainable_floats())),
        logits(batch.ids.size() * static_cast<size_t>(vocab));
    graph::RunRequest request;
    request.gradients = gradients.data();
    request.all_logits = logits.data();
    const graph::RunStats stats = run.run(batch, request);
    compare_logits(golden, batch, logits, vocab, setup_.bounds.logits);
    const double loss = scalar(golden, "loss_sum");
    judge("loss, relative", std::fabs(stats.loss_sum - loss) / loss, setup_.bounds.loss);
    Worst worst;
    for (const graph::Trainable& t : params->trainables())
      compare_gradient(golden, "grad." + t.name, gradients, t, stats.valid, false, &worst);
    judge("gradients, worst relative L2", worst.error, setup_.bounds.grad, worst.name);
  }

  void compare_gradient(const formats::TensorSource& golden, const std::string& name,
                        const std::vector<float>& gradients, const graph::Trainable& t,
                        int64_t valid, bool transposed, Worst* worst) {
    const std::vector<float> theirs = golden.read_f32(golden.at(name));
    std::vector<float> ours(theirs.size());
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t c = 0; c < t.cols; ++c)
        ours[static_cast<size_t>(transposed ? c * t.rows + r : r * t.cols + c)] =
            gradients[static_cast<size_t>(t.offset + r * t.cols + c)] / static_cast<float>(valid);
    const double error = relative_l2(ours, theirs);
    if (verbose_) std::printf("    %-70s %.3e\n", name.c_str(), error);
    worst->take(error, name);
  }

  void lora() {
    const ir::Reader reader(ir_);
    const int64_t vocab = graph::validate(reader.model(), ir_.string());
    const graph::LoraOptions options = train::adapter_options(dir_ / "adapter");
    auto params = load(reader, false, &options);
    train::load_adapter(dir_ / "adapter", *params, pool_);
    graph::Executor run = executor(reader, *params);
    const formats::SafetensorsFile inputs(dir_ / "golden.safetensors"),
        golden(results_ / "golden_lora.safetensors");
    const graph::Batch batch = batch_of(inputs, "", 1 << 20);
    std::vector<float> gradients(static_cast<size_t>(params->trainable_floats())),
        logits(batch.ids.size() * static_cast<size_t>(vocab));
    graph::RunRequest request;
    request.gradients = gradients.data();
    request.all_logits = logits.data();
    const graph::RunStats stats = run.run(batch, request);
    std::printf("  with the adapter:\n");
    compare_logits(golden, batch, logits, vocab, setup_.bounds.lora_logits);
    const double loss = scalar(golden, "loss_sum");
    judge("loss, relative", std::fabs(stats.loss_sum - loss) / loss, setup_.bounds.loss);
    Worst worst;
    for (const auto& [path, a] : params->adapters()) {
      const std::string base = "grad.base_model.model." + path;
      const auto& list = params->trainables();
      compare_gradient(golden, base + ".lora_A.default.weight", gradients,
                       list[static_cast<size_t>(a.a)], stats.valid, false, &worst);
      compare_gradient(golden, base + ".lora_B.default.weight", gradients,
                       list[static_cast<size_t>(a.b_t)], stats.valid, true, &worst);
    }
    judge("gradients, worst relative L2", worst.error, setup_.bounds.lora_grad, worst.name);
  }

  void trajectory() {
    const support::Json doc = support::read_json((results_ / "trajectory.json").string());
    const support::Json& optimizer = doc.at("optimizer");
    const auto& steps = doc.at("steps").as_array();
    const formats::SafetensorsFile batches(dir_ / "trajectory_batches.safetensors");
    const ir::Reader reader(master_ir_);
    auto params = load(reader, true, nullptr);
    graph::Executor run = executor(reader, *params);
    train::Engine engine(run, *params, pool_, 1);
    optim::AdamW adam = make_optimizer(optimizer, *params);
    Worst loss_error, norm_error;
    for (size_t k = 0; k < steps.size(); ++k) {
      const graph::Batch micro[2] = {
          batch_of(batches, "batch" + std::to_string(2 * k % 4) + ".", 1 << 20),
          batch_of(batches, "batch" + std::to_string((2 * k + 1) % 4) + ".", 1)};
      train::Engine::Result r = engine.step(
          2, [&](int64_t i) -> const graph::Batch& { return micro[i]; },
          [](int64_t) -> const graph::MaskSource* { return nullptr; }, nullptr);
      const double loss = r.stats.loss_sum / static_cast<double>(r.stats.valid),
                   want = steps[k].at("loss").as_double();
      const double norm = apply(&adam, steps[k].at("lr").as_double(),
                                optimizer.at("max_grad_norm").as_double(), r, *params);
      const double want_norm = steps[k].at("grad_norm").as_double();
      if (verbose_)
        std::printf("    step %zu loss %.6f (%.6f) grad_norm %.6f (%.6f)\n", k + 1, loss, want,
                    norm, want_norm);
      loss_error.take(std::fabs(loss - want), "step " + std::to_string(k + 1));
      norm_error.take(std::fabs(norm - want_norm) / want_norm, "step " + std::to_string(k + 1));
    }
    std::printf("  ten steps of full fine-tuning:\n");
    judge("losses, worst difference", loss_error.error, setup_.bounds.trajectory_loss,
          loss_error.name);
    judge("gradient norms, worst relative", norm_error.error, setup_.bounds.trajectory_norm,
          norm_error.name);
  }

  static std::vector<optim::ParameterView> views(const graph::Parameters& params) {
    std::vector<optim::ParameterView> list;
    for (const graph::Trainable& t : params.trainables())
      list.push_back({t.name, t.rows, t.cols, t.offset, t.decay});
    return list;
  }
  static optim::AdamW make_optimizer(const support::Json& o, const graph::Parameters& params) {
    optim::AdamWOptions options;
    options.beta1 = o.at("betas").as_array()[0].as_double();
    options.beta2 = o.at("betas").as_array()[1].as_double();
    options.eps = o.at("eps").as_double();
    options.weight_decay = o.at("weight_decay_2d").as_double();
    return optim::AdamW(views(params), options);
  }
  // Clips and updates; returns the norm before clipping.
  double apply(optim::AdamW* adam, double lr, double max_norm, const train::Engine::Result& r,
               graph::Parameters& params) {
    const double scale = 1.0 / static_cast<double>(r.stats.valid);
    const optim::GradientNorm norm = optim::gradient_norm(adam->views(), r.gradients, scale, pool_);
    adam->step(params.masters(), r.gradients, lr, scale * optim::clip_factor(norm.norm, max_norm),
               pool_);
    params.refresh(pool_, nullptr);
    return norm.norm;
  }

  fs::path dir_, results_, checkpoint_;  // inputs, the results to meet, the weights
  fs::path ir_, master_ir_;              // our models
  Setup setup_;
  bool verbose_;
  bool ok_ = true;
  ThreadPool pool_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string dir, precision = "fp32", checkpoint;
  bool verbose = false, recipe = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--precision" && i + 1 < argc)
      precision = argv[++i];
    else if (arg == "--checkpoint" && i + 1 < argc)
      checkpoint = argv[++i];
    else if (arg == "--recipe")
      recipe = true;
    else if (arg == "--verbose")
      verbose = true;
    else
      dir = arg;
  }
  if (dir.empty()) {
    std::fprintf(stderr,
                 "usage: lf-golden-check DIR [--precision fp32|bf16|fp8|e5m2|compute|hybrid] "
                 "[--checkpoint NAME] "
                 "[--recipe] [--verbose]\n");
    return 2;
  }
  try {
    Checker checker(fs::path(dir).lexically_normal(), setup_of(precision), checkpoint, recipe,
                    verbose);
    return checker.run() ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "lf-golden-check: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
