#include "formats/peft.h"

#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "formats/torch_file.h"
#include "support/printable.h"
#include "support/unicode.h"
#include "tensor/convert.h"

namespace loongforge::formats {

using support::printable;

namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr const char* kMergeHint =
    "merge it into its base model with PEFT (merge_and_unload) and convert that";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What a tensor that is no plain A or B belongs to.
[[noreturn]] void refuse_tensor(const StoredTensor& tensor) {
  const std::string& name = tensor.name;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  std::string what = "is no LoRA tensor that this program knows";
  const char* hint = kMergeHint;
  if (has("lora_magnitude_vector")) {
    what = "belongs to DoRA, which is not supported";
  } else if (has("lora_embedding_") || has(".base_layer.")) {
    what = "adapts an embedding, which is not supported";
  } else if (has("lora_B.") && ends_with(name, ".bias")) {
    what = "is a bias of lora_B (lora_bias), which is not supported";
  } else if (has("lora_A.") || has("lora_B.")) {
    what = "is no base_model.model.<module>.lora_A.weight or lora_B.weight";
    hint = "save the adapter with PEFT's save_pretrained";
  } else if (!has("lora_")) {
    what = "is a whole weight (modules_to_save), which is not supported";
  }
  throw_bad_data(tensor.where(), what, hint);
}

struct TensorName {
  std::string_view module, adapter;  // adapter: empty where the name has none
  bool a = false;
};

// <prefix><module>.lora_A[.<adapter>].weight
std::optional<TensorName> parse_name(std::string_view name) {
  constexpr std::string_view kWeight = "weight";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  TensorName out;
  const size_t at_a = name.rfind(".lora_A."), at_b = name.rfind(".lora_B.");
  const size_t none = std::string_view::npos;
  out.a = at_a != none && (at_b == none || at_a > at_b);
  const size_t at = out.a ? at_a : at_b;
  if (at == none || at == 0) return std::nullopt;
  out.module = name.substr(0, at);
  const std::string_view rest = name.substr(at + std::string_view(".lora_A.").size());
  if (rest == kWeight) return out;
  const size_t dot = rest.find('.');
  if (dot == none || dot == 0 || rest.substr(dot + 1) != kWeight) return std::nullopt;
  out.adapter = rest.substr(0, dot);
  return out;
}

std::string shape_text(const StoredTensor& tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

void check_matrix(const TensorSource& source, const StoredTensor& tensor) {
  if (tensor.shape.size() != 2 || tensor.elements() == 0) {
    throw_bad_data(tensor.where(), "has shape " + shape_text(tensor) + ", not a matrix");
  }
  if (!source.readable_f32(tensor))
    throw_bad_data(tensor.where(), "has type " + tensor.type + ", not F32, BF16 or F16");
}

void complete_module(const PeftConfig& config, PeftModule& module) {
  const StoredTensor *a = module.a, *b = module.b;
  if (a == nullptr || b == nullptr) {
    throw_bad_data((a != nullptr ? a : b)->where(),
                   std::string("has no ") + (a != nullptr ? "lora_B" : "lora_A") + " beside it");
  }
  module.r = a->shape[0];
  module.in = a->shape[1];
  module.out = b->shape[0];
  if (b->shape[1] != module.r) {
    throw_bad_data(b->where(), "has shape " + shape_text(*b) + ", which does not fit lora_A's " +
                                   shape_text(*a));
  }
  const int64_t rank = config.rank_of(module.module);
  if (module.r != rank) {
    throw_bad_data(a->where(), "has rank " + std::to_string(module.r) +
                                   ", but adapter_config.json says " + std::to_string(rank));
  }
  module.scaling = config.scaling_of(module.module);
}

}  // namespace

PeftAdapter::PeftAdapter(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  if (!folder_exists(folder)) throw_absent(folder.string(), "is no folder");
  if (const std::string hint = hub_cache_hint(folder); !hint.empty())
    throw_no_input(folder.string(), "holds no PEFT adapter (adapter_config.json)", hint);
  const std::string config_path = (folder / "adapter_config.json").string();
  config_ = parse_peft_config(support::read_json(config_path), config_path);
  const fs::path weights = folder / "adapter_model.safetensors";
  if (!path_exists(weights) && path_exists(folder / "adapter_model.bin")) {
    file_ = std::make_unique<TorchFile>(folder / "adapter_model.bin");
  } else {
    file_ = std::make_unique<SafetensorsFile>(weights);
  }
  std::map<std::string, PeftModule> modules;
  std::optional<std::string> adapter;
  for (const StoredTensor& tensor : file_->tensors()) {
    const std::optional<TensorName> name = parse_name(tensor.name);
    if (!name || support::find_invalid_utf8(tensor.name) != std::string::npos)
      refuse_tensor(tensor);
    if (adapter && *adapter != name->adapter) {
      throw_bad_data(tensor.where(), "belongs to another adapter than the tensors before it",
                     "save one adapter alone, with PEFT's save_pretrained");
    }
    adapter = name->adapter;
    check_matrix(*file_, tensor);
    PeftModule& module = modules[std::string(name->module)];
    (name->a ? module.a : module.b) = &tensor;
  }
  if (modules.empty()) throw_bad_data(weights.string(), "holds no adapter tensors");
  for (auto& [name, module] : modules) {
    module.module = name;
    complete_module(config_, module);
    if (!config_.targets(name)) {
      throw_bad_data(module.a->where(),
                     "adapts a module that target_modules of adapter_config.json does not name",
                     "are both files of one adapter?");
    }
    modules_.push_back(std::move(module));
  }
}

std::string peft_tensor_name(std::string_view module, bool a) {
  return std::string(kPrefix) + std::string(module) + (a ? ".lora_A.weight" : ".lora_B.weight");
}

void write_peft(const std::filesystem::path& folder, const PeftConfig& config,
                std::span<const PeftWeights> modules, tensor::DType dtype) {
  if (!tensor::converts_from_f32(dtype)) {
    throw_usage("adapters cannot be written as " + std::string(tensor::dtype_name(dtype)),
                "F32, BF16 and F16 can");
  }
  std::vector<NewTensor> tensors;
  for (const PeftWeights& module : modules) {
    tensors.push_back({peft_tensor_name(module.module, true), dtype, {module.r, module.in}});
    tensors.push_back({peft_tensor_name(module.module, false), dtype, {module.out, module.r}});
  }
  SafetensorsWriter writer(folder / "adapter_model.safetensors", std::move(tensors));
  std::vector<uint8_t> bytes;
  const auto write = [&](const std::string& name, const float* values, int64_t count) {
    bytes.resize(static_cast<size_t>(count) * tensor::dtype_bytes(dtype));
    tensor::from_f32(dtype, values, static_cast<size_t>(count), bytes.data());
    writer.write(name, bytes);
  };
  for (const PeftWeights& module : modules) {
    write(peft_tensor_name(module.module, true), module.a, module.r * module.in);
    write(peft_tensor_name(module.module, false), module.b, module.out * module.r);
  }
  writer.finish();
  write_text_atomic(folder / "adapter_config.json", peft_config_text(config));
}

}  // namespace loongforge::formats
