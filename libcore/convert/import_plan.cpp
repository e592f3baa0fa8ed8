#include "convert/import_plan.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "convert/kept_fp8.h"
#include "convert/kept_nf4.h"
#include "convert/reorder.h"
#include "convert/roles.h"
#include "convert/tied.h"
#include "convert/token_ids.h"
#include "ir/layout.h"
#include "kernels/types.h"
#include "support/printable.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using tensor::DType;
namespace fs = std::filesystem;

void open_source(const ImportOptions& options, ImportPlan* plan) {
  const fs::path& input = options.input_path;
  if (input.empty()) throw_usage("the input path is empty");
  if (!path_exists(input)) throw_absent(input.string());
  if (folder_exists(input) && path_exists(input / ir::kModelFile)) {
    throw_usage(input.string() + " is a LoongIR folder already",
                "loongforge convert --export hf turns it back");
  }
  const fs::path kind = input.extension();
  if (!folder_exists(input) && (kind == ".safetensors" || kind == ".bin" || kind == ".pt")) {
    throw_usage(input.string() + " is one file of a model",
                "give the folder that holds it and config.json");
  }
  plan->source = formats::open_tensor_source(input);
  const auto* gguf = dynamic_cast<const formats::GgufFile*>(plan->source.get());
  plan->gguf = gguf != nullptr;
  plan->report.source_format = plan->source->format();
  if (gguf == nullptr) {
    // The family first: what another kind of model has instead of a decoder's keys is no fault.
    const std::string where = (input / "config.json").string();
    support::Json raw = support::read_json(where);
    plan->family =
        &models::choose_family(formats::model_type_of(raw, where), where, options.model_name);
    plan->config = formats::parse_hf_config(std::move(raw), where);
    plan->source = formats::with_quantization(std::move(plan->source), plan->config);
    plan->quantized = dynamic_cast<const formats::QuantizedSource*>(plan->source.get());
    return;
  }
  const std::string& architecture = gguf->require_string("general.architecture");
  plan->family = models::find_by_gguf_architecture(architecture);
  if (plan->family == nullptr) {
    throw_bad_data(
        gguf->path().string(),
        "general.architecture \"" + support::printable(architecture, 60) + "\" is not supported",
        "known model types: " + models::known_model_types());
  }
  const models::Family* by_label = models::find_by_label(options.model_name);
  if (by_label != nullptr && !models::has_gguf_architecture(*by_label, architecture)) {
    throw_usage("--model-name \"" + options.model_name + "\" names the family " +
                std::string(by_label->name) + ", " + gguf->path().string() +
                " is of architecture " + architecture);
  }
  plan->config =
      formats::parse_hf_config(plan->family->config_from_gguf(*gguf), gguf->path().string());
}

// A tokenizer of a kind that this version cannot run does not keep the weights from being
// converted: its files go along, and it is said. One that the user names, and one that is damaged,
// end in their error.
std::optional<data::Tokenizer> load_tokenizer(const fs::path& path, bool named,
                                              std::vector<std::string>* warnings) {
  try {
    return data::Tokenizer::load(path.string());
  } catch (const Error& error) {
    if (named || error.message().find("not supported") == std::string::npos) throw;
    warnings->push_back(
        error.where() + ": " + error.message() +
        ": the tokenizer's files are copied, training on text will ask for --tokenizer_path");
    return std::nullopt;
  }
}

// The tokenizer and generation_config.json: their files go along, their special ids into the model.
void read_tokenizer(const ImportOptions& options, ImportPlan* plan) {
  const bool folder = folder_exists(options.input_path);
  const fs::path own = folder && plan->gguf ? plan->source->path() : options.input_path;
  const fs::path path = options.tokenizer_path.empty() ? own : options.tokenizer_path;
  std::optional<data::Tokenizer> tokenizer;
  if (!options.tokenizer_path.empty() || data::Tokenizer::present(path.string())) {
    tokenizer = load_tokenizer(path, !options.tokenizer_path.empty(), &plan->report.warnings);
    plan->tokenizer_files = data::tokenizer_files(path.string());
    // More rows than ids are padding; an id without a row could not be looked up.
    if (tokenizer && tokenizer->vocab_size() > plan->config.vocab_size)
      throw_bad_data(path.string(),
                     "the tokenizer has ids up to " + std::to_string(tokenizer->vocab_size() - 1) +
                         ", the model's embedding has " + std::to_string(plan->config.vocab_size) +
                         " rows",
                     "resize the model's embedding, or name the tokenizer that belongs to it with "
                     "--tokenizer_path");
  } else {
    plan->report.warnings.push_back(
        path.string() + " has no tokenizer: training on text will ask for --tokenizer_path");
  }
  std::optional<formats::GenerationConfig> generation;
  const fs::path generation_path = options.input_path / "generation_config.json";
  if (folder && path_exists(generation_path)) {
    generation = formats::read_generation_config(generation_path);
    plan->generation_config = read_text(generation_path);
  }
  TokenIds ids = resolve_token_ids(plan->config, generation ? &*generation : nullptr,
                                   tokenizer ? &*tokenizer : nullptr, options.pad_token_id);
  plan->token_ids = std::move(ids.block);
  if (plan->gguf && !plan->generation_config)
    plan->generation_config = generation_config_of(plan->token_ids).dump(2) + "\n";
  plan->report.pad_token_id = ids.pad;
  plan->report.has_tokenizer = tokenizer.has_value();
  for (std::string& warning : ids.warnings) plan->report.warnings.push_back(std::move(warning));
}

// Where the source holds a tied head that differs from the embedding, the configuration is wrong:
// both are kept, and it says so from here on.
void plan_model(ImportPlan* plan) {
  const auto names = plan->gguf ? models::SourceNames::kGguf : models::SourceNames::kHuggingFace;
  plan->model = plan->family->plan(plan->config, *plan->source, names);
  const models::PlannedAlias* differs = differing_alias(*plan->source, plan->model);
  if (differs == nullptr) return;
  plan->report.warnings.push_back(differs->source->where() + " differs from " + differs->alias_of +
                                  ", to which tie_word_embeddings ties it: both are kept, untied");
  plan->config.tie_word_embeddings = false;
  plan->config.raw.set("tie_word_embeddings", false);
  plan->model = plan->family->plan(plan->config, *plan->source, names);
}

DType source_dtype(const formats::StoredTensor& stored) {
  return stored.dtype.value_or(DType::kF32);  // block-quantised types are read as fp32
}

std::string default_name(const fs::path& input) {
  const fs::path path = absolute_path(input);
  return (folder_exists(input) ? path.filename() : path.stem()).string();
}

// An FP8 checkpoint asked for in FP8 stays what it is: its codes, and everything else in its type.
bool keeps_source(const ImportOptions& options, const ImportPlan& plan) {
  if (options.quantize != "fp8" || plan.quantized == nullptr) return false;
  for (const models::PlannedTensor& planned : plan.model.tensors) {
    const formats::QuantizedTensor* tensor = plan.quantized->quantized(*planned.source);
    if (tensor != nullptr && tensor->scheme == formats::QuantScheme::kFp8) return true;
  }
  return false;
}

// The decision for a tensor of such a checkpoint.
quant::Decision keep_tensor(const ImportPlan& plan, const models::PlannedTensor& planned,
                            const formats::QuantizedTensor* kept, ir::TensorEntry* entry) {
  if (kept != nullptr) {
    *entry = kept_entry(*kept, planned.name);
    kept_scales(plan.quantized->stored(), *kept);  // whether they can be kept
    return {quant::Storage::kFp8, entry->dtype, "kept as the checkpoint has it"};
  }
  DType dtype = source_dtype(*planned.source);
  if (!tensor::converts_from_f32(dtype)) dtype = DType::kF32;
  return {quant::Storage::kSource, dtype, "the checkpoint keeps it in higher precision"};
}

// An override that decides nothing is a slip of the user's.
void check_overrides(const ImportOptions& options, const models::ModelPlan& model) {
  std::vector<std::string> patterns, names;
  for (const quant::AmpRule& rule : options.quantize_overrides) patterns.push_back(rule.pattern);
  for (const models::PlannedTensor& tensor : model.tensors) names.push_back(tensor.name);
  if (const auto unused = quant::unused_pattern(patterns, names)) {
    const std::string flag = "--quantize_override " + patterns[unused->index];
    if (unused->shadowed)
      throw_usage(flag + " is never reached: patterns before it take all that it matches",
                  "the first pattern that matches counts: put it before them, or leave it out");
    throw_usage(flag + " matches no tensor of this model", "a pattern as \"*.down_proj\"");
  }
  const auto roles = tensor_roles(model.graph);
  for (const quant::AmpRule& rule : options.quantize_overrides) {
    const bool nf4 = rule.storage == quant::Storage::kNf4;
    if (rule.storage != quant::Storage::kFp8 && !nf4) continue;
    const bool used = std::any_of(model.tensors.begin(), model.tensors.end(), [&](const auto& t) {
      return t.shape.size() == 2 && quant::layer_match(rule.pattern, t.name) &&
             (!nf4 || roles.at(t.name) == quant::TensorRole::kLinear);
    });
    if (used) continue;
    const std::string flag = "--quantize_override " + rule.pattern;
    if (nf4)
      throw_usage(flag + " matches no linear layer of a block, and nf4 stores no other tensor",
                  "use fp8, bf16 or fp32 for them");
    throw_usage(flag + " matches norms and biases only, which fp8 cannot store",
                "use bf16 or fp32 for them");
  }
}

// What a tensor that is to be NF4 becomes: itself, where the checkpoint holds it so.
const formats::QuantizedTensor* decide_nf4(const ImportPlan& plan,
                                           const models::PlannedTensor& planned,
                                           quant::Decision* decision, ir::TensorEntry* entry) {
  const formats::QuantizedTensor* stored =
      plan.quantized != nullptr ? plan.quantized->quantized(*planned.source) : nullptr;
  if (stored != nullptr && stored->scheme != formats::QuantScheme::kNf4) stored = nullptr;
  if (stored != nullptr && !nf4_can_be_kept(*stored)) {
    *decision = {quant::Storage::kBf16, DType::kBF16,
                 "its NF4 blocks do not end with its rows, so it is decoded"};
    return nullptr;
  }
  entry->block_rows = 1;
  entry->block_cols = ir::kNf4Block;
  return stored;
}

void decide_tensors(const ImportOptions& options, ImportPlan* plan) {
  quant::AmpPolicy policy = quant::AmpPolicy::standard(options.quantize, options.quantize_head);
  policy.prepend(options.quantize_overrides);
  check_overrides(options, plan->model);
  const auto roles = tensor_roles(plan->model.graph);
  const std::string& head = plan->model.graph.nodes.back().params.at("weight");
  ir::FilePlan files(plan->page);
  const bool keep = keeps_source(options, *plan);
  if (keep && (options.quantize_head || !options.quantize_overrides.empty())) {
    throw_usage(std::string(options.quantize_head ? "--quantize_head" : "--quantize_override") +
                    " does not go with " + options.input_path.string() +
                    ", an FP8 checkpoint that is kept as it is",
                "leave it out, or convert the bf16 checkpoint");
  }
  for (const models::PlannedTensor& planned : plan->model.tensors) {
    if (!plan->source->readable_f32(*planned.source)) {
      throw_bad_data(planned.source->where(),
                     "has the type " + planned.source->type + ", which cannot be read",
                     planned.source->type.starts_with("F8") && !plan->gguf
                         ? "an FP8 checkpoint says so by quantization_config in its config.json"
                         : "");
    }
    ir::TensorEntry entry;
    entry.name = planned.name;
    entry.shape = planned.shape;
    const quant::TensorRole role = roles.at(planned.name);
    quant::TensorFacts facts;
    facts.name = planned.name;
    facts.role = role;
    facts.elements = entry.rows() * entry.cols();
    facts.rank = static_cast<int64_t>(planned.shape.size());
    facts.tied = role == quant::TensorRole::kEmbedding && planned.name == head;
    facts.source = source_dtype(*planned.source);
    quant::Decision decision = policy.decide(facts);
    const formats::QuantizedTensor* kept =
        keep ? plan->quantized->quantized(*planned.source) : nullptr;
    if (keep) {
      decision = keep_tensor(*plan, planned, kept, &entry);
    } else if (decision.storage == quant::Storage::kFp8) {
      entry.block_rows = entry.block_cols = kernels::kWeightBlock;
    } else if (decision.storage == quant::Storage::kNf4) {
      kept = decide_nf4(*plan, planned, &decision, &entry);
    }
    entry.dtype = decision.dtype;
    plan->report.parameters += facts.elements;
    plan->report.source_bytes += planned.source->bytes;
    files.place(ir::placed_bytes(
        entry, kept != nullptr ? carried_entries(*kept) : std::vector<ir::TensorEntry>()));
    plan->kept.push_back(kept);
    plan->decisions.push_back(std::move(decision));
    plan->entries.push_back(std::move(entry));
  }
  // What was decoded is no longer what the configuration says.
  if (plan->quantized != nullptr && !keep) plan->config.raw.erase("quantization_config");
  plan->stored_bytes = plan->report.stored_bytes = files.total_bytes();
  plan->report.weight_files = files.files();
}

void report_linears(const ImportOptions& options, ImportPlan* plan) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < plan->entries.size(); ++i) index[plan->entries[i].name] = i;
  int last_block = -1;
  for (const ir::Node& node : plan->model.graph.nodes) {
    last_block = std::max(last_block, node.block);
    if (node.op != "linear") continue;
    ++plan->report.linears;
    const std::string& weight = node.params.at("weight");
    const size_t i = index.at(weight);
    if (plan->decisions[i].storage == quant::Storage::kFp8) {
      ++plan->report.linears_fp8;
    } else if (plan->decisions[i].storage == quant::Storage::kNf4) {
      ++plan->report.linears_nf4;
      if (plan->kept[i] != nullptr) ++plan->report.linears_as_stored;
    } else if (options.quantize == "fp8" || options.quantize == "nf4") {
      plan->report.kept.push_back({weight, std::string(tensor::dtype_name(plan->entries[i].dtype)),
                                   plan->decisions[i].reason});
    }
  }
  plan->report.blocks = last_block + 1;
}

}  // namespace

std::string native_device() {
#if defined(__loongarch__)
  return "loongarch64";
#else
  return "x86_64";
#endif
}

ImportPlan make_import_plan(const ImportOptions& options) {
  ImportPlan plan;
  const std::string device = options.device.empty() ? native_device() : options.device;
  const auto page = ir::device_page(device);
  if (!page) throw_usage("--device " + device + " is unknown", "use loongarch64 or x86_64");
  plan.page = *page;
  if (options.quantize_head && options.quantize != "fp8")
    throw_usage("--quantize_head needs --quantize fp8");
  open_source(options, &plan);
  plan_model(&plan);
  plan.report.family = plan.family->name;
  plan.report.model_name =
      options.model_name.empty() ? default_name(options.input_path) : options.model_name;
  plan.report.device = device;
  plan.report.quantize = options.quantize;
  plan.report.tensors = static_cast<int64_t>(plan.model.tensors.size());
  plan.report.aliases = static_cast<int64_t>(plan.model.aliases.size());
  plan.report.nodes = static_cast<int64_t>(plan.model.graph.nodes.size());
  plan.report.ignored = plan.model.ignored;
  for (const std::string& warning : plan.model.warnings) plan.report.warnings.push_back(warning);
  decide_tensors(options, &plan);
  report_linears(options, &plan);
  read_tokenizer(options, &plan);
  return plan;
}

RowSource rows_of(const formats::TensorSource& source, const models::PlannedTensor& tensor) {
  const formats::StoredTensor* stored = tensor.source;
  RowSource rows;
  rows.rows = stored->rows();
  rows.cols = stored->cols();
  rows.stored = stored->dtype;
  rows.read_raw = [&source, stored](int64_t r0, int64_t r1, std::span<uint8_t> out) {
    source.read_rows(*stored, r0, r1, out);
  };
  rows.read_f32 = [&source, stored](int64_t r0, int64_t r1, std::span<float> out) {
    source.read_rows_f32(*stored, r0, r1, out);
  };
  if (tensor.interleaved_heads > 0)
    return reorder_heads(std::move(rows), tensor.interleaved_heads, HeadOrder::kFromPairs);
  return rows;
}

}  // namespace loongforge::convert
