#include "train/adapter_io.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/paths.h"
#include "formats/peft.h"
#include "graph/parameter_loader.h"
#include "train/checkpoint_manifest.h"

namespace loongforge::train {

std::filesystem::path adapter_folder(const std::filesystem::path& path) {
  constexpr const char* kConfig = "adapter_config.json";
  if (!folder_exists(path) || path_exists(path / kConfig)) return path;
  std::vector<std::filesystem::path> found;
  for (const auto& [step, folder] : list_checkpoints(path))
    if (path_exists(folder / kConfig)) found.push_back(folder);
  if (found.size() == 1) return found[0];
  const std::filesystem::path latest = path / "latest";
  throw_no_input(path.string(),
                 found.empty() ? "holds no PEFT adapter (adapter_config.json)"
                               : "holds more than one PEFT adapter",
                 path_exists(latest / kConfig) ? "did you mean " + latest.string() + "?" : "");
}

graph::LoraOptions adapter_options(const std::filesystem::path& folder) {
  const formats::PeftAdapter adapter(folder);
  graph::LoraOptions options;
  options.rank = adapter.config().r;
  options.alpha = adapter.config().lora_alpha;
  options.rslora = adapter.config().use_rslora;
  options.dropout = adapter.config().lora_dropout;
  options.source = adapter.config().raw;
  for (const formats::PeftModule& m : adapter.modules())
    options.modules[m.module] = {m.r, static_cast<float>(m.scaling)};
  if (options.modules.empty()) throw_bad_data(folder.string(), "the adapter holds no LoRA pair");
  return options;
}

void load_adapter(const std::filesystem::path& folder, graph::Parameters& params,
                  ThreadPool& pool) {
  const formats::PeftAdapter file(folder);
  for (const std::string& key : file.config().unknown_keys)
    log_warning(folder.string() + "/adapter_config.json: the key " + key +
                " is not known and is ignored");
  for (const formats::PeftModule& m : file.modules()) {
    graph::Adapter* a = params.adapter(m.module);
    if (a == nullptr)
      throw_bad_data(folder.string() + ": " + m.module,
                     "the model has no such linear layer in its blocks (a head cannot be adapted)",
                     "is it this model's adapter?");
    if (a->rank != m.r || a->k != m.in || a->n != m.out)
      throw_bad_data(folder.string() + ": " + m.module,
                     "is " + std::to_string(m.out) + " x " + std::to_string(m.in) + " of rank " +
                         std::to_string(m.r) + ", the model's layer is " + std::to_string(a->n) +
                         " x " + std::to_string(a->k) + " of rank " + std::to_string(a->rank));
    const std::vector<float> values_a = file.tensors().read_f32(*m.a),
                             values_b = file.tensors().read_f32(*m.b);
    std::copy(values_a.begin(), values_a.end(), params.master(a->a));
    float* b_t = params.master(a->b_t);
    for (int64_t n = 0; n < a->n; ++n)
      for (int64_t r = 0; r < a->rank; ++r)
        b_t[r * a->n + n] = values_b[static_cast<size_t>(n * a->rank + r)];
  }
  params.refresh(pool, nullptr);
}

void save_adapter(const std::filesystem::path& folder, const std::string& base_model,
                  const graph::Parameters& params) {
  const graph::LoraOptions& lora = params.options().lora_options;
  const bool fresh =
      lora.source.is_null();  // else the adapter goes on as it came, patterns and all
  formats::PeftConfig config;
  if (!fresh) config = formats::parse_peft_config(lora.source, "adapter_config.json");
  if (config.base_model_name_or_path.empty()) config.base_model_name_or_path = base_model;
  config.lora_dropout = lora.dropout;
  if (fresh) {
    config.r = lora.rank;
    config.lora_alpha = lora.alpha;
    config.use_rslora = lora.rslora;
  }
  std::set<std::string> leaves;
  std::vector<std::vector<float>> transposed;
  std::vector<formats::PeftWeights> weights;
  transposed.reserve(params.adapters().size());
  for (const auto& [path, a] : params.adapters()) {
    leaves.insert(graph::module_leaf(path));
    const float* b_t = params.master(a.b_t);
    std::vector<float>& b = transposed.emplace_back(static_cast<size_t>(a.n * a.rank));
    for (int64_t n = 0; n < a.n; ++n)
      for (int64_t r = 0; r < a.rank; ++r)
        b[static_cast<size_t>(n * a.rank + r)] = b_t[r * a.n + n];
    weights.push_back({path, a.rank, a.k, a.n, params.master(a.a), b.data()});
    if (!fresh) continue;
    if (a.rank != lora.rank) config.rank_pattern.emplace_back(path, a.rank);
    const double alpha =
        static_cast<double>(a.scale) *
        (lora.rslora ? std::sqrt(static_cast<double>(a.rank)) : static_cast<double>(a.rank));
    if (std::abs(alpha - lora.alpha) > 1e-4 * std::abs(lora.alpha))
      config.alpha_pattern.emplace_back(path, alpha);
  }
  if (fresh) config.target_modules.assign(leaves.begin(), leaves.end());
  formats::write_peft(folder, config, weights);
}

}  // namespace loongforge::train
