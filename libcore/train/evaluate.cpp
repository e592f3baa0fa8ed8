#include "train/evaluate.h"

#include <algorithm>
#include <cmath>

#include "generate/generate.h"
#include "train/batching.h"

namespace loongforge::train {

double EvalResult::perplexity() const { return std::exp(loss); }

EvalResult evaluate(Session& session, graph::Parameters& params, const data::SampleSet& samples) {
  graph::Executor executor(
      graph::make_plan(session.reader().model(), params,
                       session.plan_options(graph::PlanMode::kEval, samples.longest())),
      params, session.pool());
  executor.set_scaling(&session.scaling());
  const size_t batch = static_cast<size_t>(session.options().per_device_eval_batch_size);
  EvalResult result;
  double sum = 0;
  std::vector<float> losses;
  graph::RunRequest request;
  request.row_loss = &losses;
  for (size_t s = 0; s < samples.size(); s += batch) {
    std::vector<Row> rows;
    for (size_t i = s; i < std::min(samples.size(), s + batch); ++i)
      rows.push_back({static_cast<uint32_t>(i)});
    result.tokens += executor.run(collate(samples, rows), request).valid;
    for (float loss : losses)
      sum += static_cast<double>(loss);  // row by row: batches leave no trace
  }
  result.loss = result.tokens > 0 ? sum / static_cast<double>(result.tokens) : 0.0;
  return result;
}

support::Json answer_prompts(Session& session, graph::Parameters& params) {
  const TrainOptions& o = session.options();
  const std::vector<data::Prompt>& prompts = session.prompts();
  int64_t longest = 0;
  for (const data::Prompt& p : prompts)
    longest = std::max(longest, static_cast<int64_t>(p.ids.size()));
  graph::Executor executor(
      graph::make_plan(
          session.reader().model(), params,
          session.plan_options(graph::PlanMode::kGenerate, longest + o.sample_max_new_tokens)),
      params, session.pool());
  executor.set_scaling(&session.scaling());
  generate::GenerateOptions g;
  g.max_new_tokens = o.sample_max_new_tokens;
  g.stop_ids = session.stop_ids();
  g.vocab_limit = session.tokenizer().vocab_size();
  g.sampling = {o.sample_temperature, o.sample_top_k, o.sample_top_p, o.seed};
  support::Json answers = support::Json::array();
  for (const data::Prompt& p : prompts) {
    const std::vector<int32_t> ids = generate::generate_tokens(executor, session.vocab(), p.ids, g);
    ++g.prompt_number;
    const std::string text = session.tokenizer().decode(ids, true);
    if (!o.json) session.print("prompt: " + p.text + "\nanswer: " + text + "\n\n");
    support::Json line = support::Json::object();
    line.set("prompt", p.text);
    line.set("answer", text);
    support::Json list = support::Json::array();
    for (int32_t id : ids) list.push_back(static_cast<int64_t>(id));
    line.set("ids", std::move(list));
    answers.push_back(std::move(line));
  }
  return answers;
}

}  // namespace loongforge::train
