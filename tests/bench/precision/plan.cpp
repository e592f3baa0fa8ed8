#include "bench/precision/plan.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "quant/pattern.h"

namespace loongforge::bench {
namespace {

// Rows of 256 tokens, 4 a step, every token trained on: the least noise that so many tokens can
// give.
std::vector<std::string> shared_arguments(int64_t steps) {
  const std::string end = std::to_string(steps);
  return {"--finetuning_type",
          "full",
          "--cutoff_len",
          "256",
          "--packing",
          "--train_on_prompt",
          "--per_device_train_batch_size",
          "4",
          "--gradient_accumulation_steps",
          "1",
          "--val_size",
          "64",
          "--per_device_eval_batch_size",
          "4",
          "--report_to",
          "jsonl",
          "--max_steps",
          end,
          "--eval_steps",
          end,
          "--save_steps",
          std::to_string(std::max<int64_t>(1, steps / 3))};
}

void append(std::vector<std::string>* to, const std::vector<std::string>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

const std::vector<std::string> kCompute = {"--fp8_precision", "e4m3", "--fp8_activations",
                                           "compute"};
const std::vector<std::string> kSaved = {"--fp8_precision", "e4m3", "--fp8_activations", "saved"};
const std::vector<std::string> kOff = {"--fp8_precision", "e4m3", "--fp8_activations", "off"};

std::vector<std::string> with(std::vector<std::string> base, const std::vector<std::string>& more) {
  append(&base, more);
  return base;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');)
    if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

Part smollm2_part(std::filesystem::path model, std::filesystem::path dataset, int64_t steps) {
  Part part;
  part.name = "smollm2";
  part.title = "SmolLM2-135M, full fine-tuning";
  part.model = std::move(model);
  part.dataset = std::move(dataset);
  part.steps = steps > 0 ? steps : 60;
  part.arguments = shared_arguments(part.steps);
  append(&part.arguments,
         {"--learning_rate", "5e-5"});  // warming up and falling as the trainer does by itself
  part.recipes = {
      {kBaseline, "bf16", {"--fp8_precision", "bf16"}},
      {"fp8", "FP8, the default (saved, block)", {"--fp8_precision", "e4m3"}},
      {"fp32", "fp32", {"--fp8_precision", "fp32"}},
      {"compute", "FP8 compute, block", kCompute},
  };
  part.barred = "fp8";
  part.bar = 0.25;
  return part;
}

Part random_part(std::filesystem::path model, std::filesystem::path dataset, int64_t steps) {
  Part part;
  part.name = "random";
  part.title = "Random Llama of 9.8 M parameters, from scratch";
  part.model = std::move(model);
  part.dataset = std::move(dataset);
  part.steps = steps > 0 ? steps : 300;
  part.arguments = shared_arguments(part.steps);
  // At 1e-3 this model's training amplifies anything: an adam_epsilon of 1.1e-8 moved bf16's own
  // loss by 2 %. Here by 0.03 %.
  append(&part.arguments, {"--learning_rate", "3e-4"});
  const std::vector<std::string> tensor = {"--fp8_recipe", "tensor-current"},
                                 delayed = {"--fp8_recipe", "delayed"};
  part.recipes = {
      {kBaseline, "bf16", {"--fp8_precision", "bf16"}},
      {"fp8", "FP8, the default (saved, block)", {"--fp8_precision", "e4m3"}},
      {"fp32", "fp32", {"--fp8_precision", "fp32"}},
      {"compute", "compute, block", kCompute},
      {"off", "off, block", kOff},
      {"saved-tensor", "saved, tensor-current", with(kSaved, tensor)},
      {"saved-delayed", "saved, delayed", with(kSaved, delayed)},
      {"compute-tensor", "compute, tensor-current", with(kCompute, tensor)},
      {"compute-delayed", "compute, delayed", with(kCompute, delayed)},
      {"compute-adaptive", "compute, adaptive bias", with(kCompute, {"--fp8_adaptive_bias"})},
      {"off-tensor", "off, tensor-current", with(kOff, tensor)},
      {"moments-fp8", "default, moments fp8", with(kSaved, {"--moments", "fp8"})},
      {"moments-bf16", "default, moments bf16", with(kSaved, {"--moments", "bf16"})},
  };
  part.barred = "fp8";
  part.bar = 1;
  return part;
}

std::string Run::id() const { return part->name + "/" + recipe->name + "/" + std::to_string(seed); }

std::vector<std::string> Run::arguments() const {
  std::vector<std::string> words = part->arguments;
  append(&words, recipe->arguments);
  append(&words, {"--seed", std::to_string(seed)});
  return words;
}

std::vector<Run> plan_runs(const std::vector<Part>& parts, int64_t seeds, const std::string& only) {
  constexpr size_t kFirst = 2;
  std::vector<Run> runs;
  for (const Part& part : parts) {
    const size_t split = std::min(kFirst, part.recipes.size());
    for (const auto& [from, to] :
         {std::pair{size_t{0}, split}, std::pair{split, part.recipes.size()}})
      for (int64_t seed = 1; seed <= seeds; ++seed)
        for (size_t r = from; r < to; ++r) runs.push_back({&part, &part.recipes[r], seed});
  }
  if (only.empty()) return runs;
  const std::vector<std::string> globs = words_of(only);
  std::erase_if(runs, [&](const Run& run) {
    return std::none_of(globs.begin(), globs.end(),
                        [&](const std::string& glob) { return quant::glob_match(glob, run.id()); });
  });
  if (runs.empty())
    throw_usage("--only " + only + " matches no run",
                "an id is part/recipe/seed, as smollm2/fp8/1");
  return runs;
}

}  // namespace loongforge::bench
