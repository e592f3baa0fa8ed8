// What every mode of `train` needs first: the model's files opened and checked, tokenizer, prompt
// style, threads. Thread-safety: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/pool.h"
#include "data/chat_template.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "graph/executor.h"
#include "ir/reader.h"
#include "quant/recipe.h"
#include "train/options.h"
#include "train/trainer.h"

namespace loongforge::train {

class Session {
 public:
  Session(const TrainOptions& options, const Output& output);

  const TrainOptions& options() const { return options_; }
  const Output& output() const { return output_; }
  ThreadPool& pool() { return *pool_; }
  const ir::Reader& reader() const { return *reader_; }
  int64_t vocab() const { return vocab_; }  // rows of the head
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  const data::PromptStyle& style() const { return style_; }
  const std::vector<data::Prompt>& prompts() const {
    return prompts_;
  }  // of --sample_prompts, read at the start

  graph::ParameterOptions parameter_options() const;  // of the run's precision and fine-tuning type
  quant::Recipe recipe() const;                       // what the --fp8_ flags ask for
  quant::ScalingState& scaling() {
    return scaling_;
  }  // of delayed scaling: training adds, evaluation reads
  // In one line, for the log: what has an effect on these parameters.
  std::string recipe_text(const graph::Parameters& params) const;
  // Error(kUsage) where a LoRA flag that was given says other than the adapter that was read.
  void check_adapter(const graph::LoraOptions& file, const std::string& where) const;
  graph::PlanOptions plan_options(graph::PlanMode mode, int64_t max_positions) const;
  // HF ids where generation stops.
  std::vector<int32_t> stop_ids() const;
  // Calls fn while options() are others, for what a run with them would need. They keep model and
  // data.
  template <class Fn>
  void as_if(const TrainOptions& others, Fn&& fn) {
    struct Restore {
      TrainOptions& place;
      TrainOptions before;
      ~Restore() { place = std::move(before); }
    } restore{options_, options_};
    options_ = others;
    fn();
  }
  // One warning where a sample of so many tokens is longer than the model was made for; may: it
  // could be.
  void warn_of_length(int64_t longest, bool may = false) const;
  // What of the flags has no effect on this model, a line each; once for a run.
  void log_notes(const graph::Parameters& params) const;
  void print(const std::string& text) const { output_.print(text.c_str()); }

 private:
  void load_tokenizer();
  void warn_of_long_answers() const;
  int64_t longest_position() const;               // max_position_embeddings; 0: not known
  std::vector<std::string> lora_targets() const;  // last components of layers' names

  TrainOptions options_;
  Output output_;
  quant::ScalingState scaling_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ir::Reader> reader_;
  int64_t vocab_ = 0;
  std::optional<data::Tokenizer> tokenizer_;
  std::optional<data::ChatTemplate> chat_;
  data::PromptStyle style_;
  std::vector<data::Prompt> prompts_;
};

// Throws Error(kUsage) for values that no run can have, naming the flag.
void check_options(const TrainOptions& options);

}  // namespace loongforge::train
