#include "train/fit_advice.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/process_memory.h"
#include "topo/machine.h"

namespace loongforge::train {
namespace {

// One change of a run. Returns its flags, empty where it changes nothing (any more).
using Change = std::function<std::string(TrainOptions*)>;

std::string checkpointing(TrainOptions* o) {
  if (o->gradient_checkpointing) return {};
  o->gradient_checkpointing = true;
  return "--gradient_checkpointing";
}

// The same rows a step in smaller micro-batches: the same gradients, up to the order of sums.
std::string smaller_batch(TrainOptions* o) {
  const int64_t rows = o->per_device_train_batch_size;
  int64_t half = rows / 2;
  while (half > 1 && rows % half != 0) --half;
  if (half < 1 || rows == 1) return {};
  o->per_device_train_batch_size = half;
  std::string flags = "--per_device_train_batch_size " + std::to_string(half);
  if (o->global_batch_size > 0) return flags;  // counts the rows of a step by itself
  o->gradient_accumulation_steps *= rows / half;
  return flags + " --gradient_accumulation_steps " + std::to_string(o->gradient_accumulation_steps);
}

std::string one_lane(TrainOptions* o) {
  const int64_t lanes = o->reduce_lanes > 0                           ? o->reduce_lanes
                        : o->finetuning_type == FinetuningType::kFull ? 1
                                                                      : 8;
  if (lanes == 1) return {};
  o->reduce_lanes = 1;
  return "--reduce_lanes 1";
}

std::string fp8(TrainOptions* o) {
  if (o->recipe.fp8()) return {};
  o->recipe.precision = quant::RunPrecision::kFp8;
  return "--fp8_precision e4m3";
}

// First bf16, then fp8.
std::string leaner_moments(TrainOptions* o) {
  if (o->moments == optim::MomentFormat::kFp8) return {};
  o->moments = o->moments == optim::MomentFormat::kF32 ? optim::MomentFormat::kBf16
                                                       : optim::MomentFormat::kFp8;
  return "--moments " + std::string(optim::moment_format_name(o->moments));
}

std::string bf16_masters(TrainOptions* o) {
  if (o->bf16_masters || o->finetuning_type != FinetuningType::kFull) return {};
  o->bf16_masters = true;
  return "--master bf16";
}

std::string shorter(TrainOptions* o) {
  if (o->cutoff_len < 256) return {};
  o->cutoff_len /= 2;
  return "--cutoff_len " + std::to_string(o->cutoff_len);
}

std::string lora(TrainOptions* o) {
  if (o->finetuning_type != FinetuningType::kFull) return {};
  o->finetuning_type = FinetuningType::kLora;
  o->learning_rate.reset();
  return "--finetuning_type lora";
}

// From what costs the least to what changes the run most.
const Change kChanges[] = {one_lane,     checkpointing, smaller_batch, leaner_moments,
                           bf16_masters, fp8,           shorter,       lora};

class Search {
 public:
  Search(Session& session, const TrainingData& data, uint64_t process, uint64_t bytes)
      : session_(session), data_(data), process_(process), bytes_(bytes) {}

  FittingFlags tried(const TrainOptions& options, std::string flags) {
    FittingFlags result;
    result.flags = std::move(flags);
    session_.as_if(options, [&] {
      const RunShape shape = shape_of(options, data_);
      auto params = graph::Parameters::declare(session_.reader(), session_.parameter_options(),
                                               session_.pool());
      result.forecast = forecast_memory(session_, shape, *params);
    });
    result.forecast.process = process_;
    result.fits = result.forecast.total() <= bytes_;
    return result;
  }

  // Repeats a change that can be made again (halving) until the run fits.
  std::optional<FittingFlags> alone(const Change& change) {
    TrainOptions options = session_.options();
    for (std::string flags = change(&options); !flags.empty(); flags = change(&options))
      if (FittingFlags result = tried(options, flags); result.fits) return result;
    return {};
  }

  // Each change as often as it can be made, on top of those before.
  FittingFlags together() {
    TrainOptions options = session_.options();
    std::vector<std::string> taken;
    FittingFlags best;
    for (const Change& change : kChanges) {
      taken.emplace_back();
      for (std::string flags = change(&options); !flags.empty(); flags = change(&options)) {
        taken.back() = flags;
        std::string all;
        for (const std::string& part : taken)
          if (!part.empty()) all += (all.empty() ? "" : " ") + part;
        FittingFlags result = tried(options, all);
        if (best.flags.empty() || result.forecast.total() < best.forecast.total()) best = result;
        if (result.fits) return result;
      }
    }
    return best;
  }

 private:
  Session& session_;
  const TrainingData& data_;
  uint64_t process_, bytes_;
};

}  // namespace

uint64_t memory_for_run() {
  return topo::read_machine().usable_memory() + process_memory().resident;
}

std::vector<FittingFlags> flags_that_fit(Session& session, const TrainingData& data,
                                         uint64_t process, uint64_t bytes) {
  Search search(session, data, process, bytes);
  std::vector<FittingFlags> found;
  for (const Change& change : kChanges)
    if (auto result = search.alone(change)) found.push_back(std::move(*result));
  if (found.empty())
    if (FittingFlags result = search.together(); !result.flags.empty())
      found.push_back(std::move(result));
  return found;
}

}  // namespace loongforge::train
