#include "graph/parameter_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "graph/weight_codes.h"
#include "kernels/nf4_format.h"
#include "kernels/optim.h"
#include "support/sm4.h"
#include "tensor/convert.h"

namespace loongforge::graph {
namespace {

using kernels::Elem;
using tensor::DType;

constexpr int64_t kStripeBytes = 8 << 20;
constexpr int64_t kAlignFloats = 16;  // trainables start on cache lines

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::string module_path(const std::string& weight_name) {
  constexpr std::string_view kSuffix = ".weight";
  if (weight_name.size() > kSuffix.size() && weight_name.ends_with(kSuffix))
    return weight_name.substr(0, weight_name.size() - kSuffix.size());
  return weight_name;
}

std::string module_leaf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

ParameterLoader::ParameterLoader(const ir::Reader& reader, const ParameterOptions& options,
                                 ThreadPool& pool)
    : reader_(reader),
      options_(options),
      pool_(pool),
      policy_(quant::AmpPolicy::running(options.recipe)),
      params_(new Parameters()) {
  policy_.prepend(options.precision_overrides);
  params_->options_ = options;
}

std::unique_ptr<Parameters> ParameterLoader::run() {
  declare();
  Parameters& p = *params_;
  if (p.master_floats_ > 0)
    p.masters_ =
        AlignedBuffer(static_cast<size_t>(p.master_floats_) * sizeof(float), Pages::kTransparent);
  if (p.master_bf16s_ > 0)
    p.masters_bf16_ = AlignedBuffer(static_cast<size_t>(p.master_bf16s_) * sizeof(kernels::Bf16),
                                    Pages::kTransparent);
  allocate_weights();
  for (auto& [path, adapter] : p.adapters_)
    adapter.scaled_b_t =
        AlignedBuffer(static_cast<size_t>(adapter.rank * adapter.n) * sizeof(float));
  for (auto& [name, weight] : p.weights_) load_weight(&weight);
  for (auto& [name, vector] : p.vectors_) load_vector(&vector);
  init_adapters();
  p.refresh(pool_, nullptr);
  return std::move(params_);
}

// One block for all packed weights: whole huge pages are then lost once, not once a weight.
void ParameterLoader::allocate_weights() {
  constexpr size_t kAlign = 4096;
  size_t total = 0;
  for (auto& [name, w] : params_->weights_)
    total += (kernels::packed_weight_bytes(w.packed.elem, w.packed.n, w.packed.k) + kAlign - 1) /
             kAlign * kAlign;
  params_->packed_ = AlignedBuffer(total, options_.pages);
  if (options_.pages == Pages::kHuge && !params_->packed_.huge()) {
    const HugePages pages = huge_pages();
    log_warning("LOONGFORGE_HUGEPAGE_ENABLE: the weights need " +
                std::to_string(pages.needed(total)) + " free huge pages of " +
                std::to_string(pages.page_bytes >> 10) + " kB, there are " +
                std::to_string(pages.free) +
                "; loading into normal pages (sysctl vm.nr_hugepages sets their number)");
  }
  uint8_t* at = params_->packed_.data();
  for (auto& [name, w] : params_->weights_) {
    w.packed.data = at;
    at += (kernels::packed_weight_bytes(w.packed.elem, w.packed.n, w.packed.k) + kAlign - 1) /
          kAlign * kAlign;
  }
}

std::unique_ptr<Parameters> ParameterLoader::declare_only() {
  declare();
  return std::move(params_);
}

int ParameterLoader::add_trainable(std::string name, int64_t rows, int64_t cols, bool decay,
                                   int block) {
  Parameters& p = *params_;
  Trainable t{std::move(name), rows, cols, p.trainable_floats_, decay, block};
  const int64_t padded = round_up(t.size(), kAlignFloats);
  p.trainable_floats_ += padded;
  // Matrices only: norms and biases are few, and what is added to them is small beside them.
  if (options_.bf16_masters && options_.train_all && decay) t.master = Elem::kBf16;
  int64_t& masters = t.master == Elem::kBf16 ? p.master_bf16s_ : p.master_floats_;
  t.master_offset = masters;
  masters += padded;
  p.trainables_.push_back(std::move(t));
  return static_cast<int>(p.trainables_.size()) - 1;
}

void ParameterLoader::declare_weight(const ir::Node& node, quant::TensorRole role) {
  Parameters& p = *params_;
  const std::string& name = node.params.at("weight");
  const ir::TensorEntry& stored = reader_.model().stored_tensor(name);
  if (stored.name != name) p.alias_[name] = stored.name;
  if (p.weights_.contains(stored.name)) {
    if (role == quant::TensorRole::kHead) tied_ = true;
    return;
  }
  Weight& w = p.weights_[stored.name];
  w.name = stored.name;
  w.role = role;
  p.parameter_count_ += stored.rows() * stored.cols();
  if (options_.train_all)
    w.trainable = add_trainable(stored.name, stored.rows(), stored.cols(), true, node.block);
}

void ParameterLoader::declare_vector(const ir::Node& node, const std::string& tensor) {
  Parameters& p = *params_;
  const ir::TensorEntry& stored = reader_.model().stored_tensor(tensor);
  VectorParam& v = p.vectors_[tensor];
  v.name = tensor;
  v.size = stored.rows() * stored.cols();
  p.parameter_count_ += v.size;
  if (options_.train_all) v.trainable = add_trainable(tensor, 1, v.size, false, node.block);
}

// The linears of one input together: all A side by side (one product makes all their gradients),
// then all B.
void ParameterLoader::declare_adapters(const std::string& input) {
  if (!adapted_inputs_.insert(input).second) return;
  const LoraOptions& lora = options_.lora_options;
  std::vector<std::pair<Adapter*, int>> group;
  for (const ir::Node& node : reader_.model().graph.nodes) {
    if (node.op != "linear" || node.block < 0 || node.inputs.at(0) != input) continue;
    const std::string path = module_path(node.params.at("weight"));
    LoraModule module{
        lora.rank,
        static_cast<float>(lora.rslora ? lora.alpha / std::sqrt(static_cast<double>(lora.rank))
                                       : lora.alpha / static_cast<double>(lora.rank))};
    const auto& targets = lora.targets;
    if (!lora.modules.empty()) {
      auto listed = lora.modules.find(path);
      if (listed == lora.modules.end()) continue;
      module = listed->second;
    } else if (!targets.empty() &&
               std::find(targets.begin(), targets.end(), module_leaf(path)) == targets.end()) {
      continue;
    }
    const ir::TensorEntry& w = reader_.model().stored_tensor(node.params.at("weight"));
    Adapter& a = params_->adapters_[path];
    a.node = path;
    a.rank = module.rank;
    a.n = w.rows();
    a.k = w.cols();
    a.scale = module.scale;
    a.dropout = static_cast<float>(lora.dropout);
    a.mask_stream = static_cast<uint32_t>(adapted_inputs_.size());
    group.emplace_back(&a, node.block);
  }
  for (auto& [a, block] : group)
    a->a = add_trainable(a->node + ".lora_A", a->rank, a->k, true, block);
  for (auto& [a, block] : group)
    a->b_t = add_trainable(a->node + ".lora_B_t", a->rank, a->n, true, block);
}

void ParameterLoader::declare() {
  const ir::Graph& graph = reader_.model().graph;
  Parameters& p = *params_;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& node = graph.nodes[i];
    const bool head = i + 1 == graph.nodes.size();
    if (node.op == "embedding") declare_weight(node, quant::TensorRole::kEmbedding);
    if (node.op == "rms_norm") declare_vector(node, node.params.at("weight"));
    if (node.op != "linear") continue;
    declare_weight(node, head ? quant::TensorRole::kHead : quant::TensorRole::kLinear);
    const ir::TensorEntry& w = reader_.model().stored_tensor(node.params.at("weight"));
    p.linear_count_ += w.rows() * w.cols();
    if (auto bias = node.params.find("bias"); bias != node.params.end())
      declare_vector(node, bias->second);
    if (options_.lora) declare_adapters(node.inputs.at(0));
  }
  for (auto& [name, weight] : p.weights_) shape_weight(&weight);
  check_patterns();
  if (options_.lora) check_targets();
}

// Every name has to adapt something.
void ParameterLoader::check_targets() const {
  std::string known;
  std::set<std::string> leaves;
  for (const ir::Node& node : reader_.model().graph.nodes)
    if (node.op == "linear" && node.block >= 0)
      leaves.insert(module_leaf(module_path(node.params.at("weight"))));
  for (const std::string& leaf : leaves) known += (known.empty() ? "" : ", ") + leaf;
  if (options_.lora_options.modules.empty())
    for (const std::string& target : options_.lora_options.targets)
      if (!leaves.contains(target))
        throw_usage("--lora_target " + target + " names no linear layer of this model",
                    "it has: " + known);
  if (params_->adapters_.empty())
    throw_usage("--lora_target names no linear layer of this model", "it has: " + known);
}

// What the policy says of a weight, and what that means for what is in memory.
Elem ParameterLoader::target_elem(const ir::TensorEntry& entry, Weight* weight) const {
  const quant::Recipe& recipe = options_.recipe;
  const quant::TensorFacts facts{entry.name, weight->role, entry.rows() * entry.cols(),
                                 2,          tied_,        entry.dtype};
  const quant::Decision d = policy_.decide(facts);
  weight->reason = d.reason;
  weight->precision = d.by_request && d.storage == quant::Storage::kF32 ? kernels::Precision::kF32
                      : d.by_request && d.storage == quant::Storage::kBf16
                          ? kernels::Precision::kBf16
                          : recipe.operands();
  const bool asks_fp8 = d.storage == quant::Storage::kFp8;
  weight->fp8_layer =
      weight->role == quant::TensorRole::kLinear && (d.by_request ? asks_fp8 : recipe.fp8());
  weight->amax_factor = recipe.factor_of(entry.name);
  if (d.by_request && asks_fp8 && recipe.precision == quant::RunPrecision::kFp32)
    throw_usage("--precision_override " + entry.name + ": a run in fp32 rounds nothing",
                "leave out --fp8_precision fp32, or the override");
  if (entry.dtype == DType::kNf4) {
    weight->reason = "the file's NF4 codes as they are";
    return Elem::kNf4;
  }
  if (entry.dtype == DType::kE4M3LA && !options_.train_all &&
      weight->role != quant::TensorRole::kEmbedding) {
    // The codes are exact images, whatever computes; FP8 is never made from FP8.
    if (!asks_fp8 || recipe.weight_elem() != Elem::kE4M3)
      weight->reason += "; the file's FP8 codes as they are";
    return Elem::kE4M3;
  }
  if (asks_fp8) return recipe.fp8() ? recipe.weight_elem() : Elem::kE4M3;
  if (d.storage == quant::Storage::kF32 && (options_.train_all || entry.dtype != DType::kBF16))
    return Elem::kF32;
  return Elem::kBf16;
}

// A pattern that names nothing is a slip of the user's; one whose tensors are not rounded is told.
void ParameterLoader::check_patterns() {
  check_precision_patterns();
  std::vector<std::string> names, patterns;
  std::vector<bool> rounded;
  const quant::Recipe& recipe = options_.recipe;
  const bool computes = recipe.activations == quant::Activations::kCompute,
             trains = options_.train_all || options_.lora;
  const bool saves = recipe.activations == quant::Activations::kSaved && trains;
  for (const auto& [name, w] : params_->weights_) {
    const bool as_stored =
        reader_.model().stored_tensor(name).dtype == DType::kE4M3LA && !options_.train_all;
    names.push_back(module_path(name) + ".weight");
    rounded.push_back(is_fp8(w.packed.elem) && !as_stored);
    if (w.role != quant::TensorRole::kLinear && w.role != quant::TensorRole::kHead) continue;
    names.push_back(module_path(name) + ".input");
    rounded.push_back(w.fp8_layer && (computes || saves));
    names.push_back(module_path(name) + ".grad");
    rounded.push_back(w.fp8_layer && computes && trains);
  }
  for (const quant::ScaleOverride& each : recipe.scale_overrides) patterns.push_back(each.pattern);
  refuse_unused("--fp8_scale_override ", patterns, names, "layer",
                "a pattern as \"*.down_proj\", or of a tensor as \"*.down_proj.grad\"");
  const auto no_effect = [&](const std::string& flag, const std::string& what) {
    params_->notes_.push_back(flag + " has no effect: " + what + " is rounded to FP8 in this run");
  };
  for (const std::string& pattern : patterns) {
    bool used = false;
    for (size_t n = 0; n < names.size(); ++n)
      used |= rounded[n] && quant::layer_match(pattern, names[n]);
    if (used) continue;
    params_->idle_scaling_.insert(pattern);
    no_effect("--fp8_scale_override " + pattern, "nothing that it matches");
  }
  if (std::find(rounded.begin(), rounded.end(), true) != rounded.end()) return;
  params_->idle_scaling_.insert("");
  if (recipe.scale_factor != 1.0f) no_effect("--fp8_scale_factor", "nothing");
  if (recipe.fp8() && recipe.scales != quant::ScaleRecipe::kBlock)
    no_effect("--fp8_recipe", "nothing");
}

void ParameterLoader::refuse_unused(const std::string& flag,
                                    const std::vector<std::string>& patterns,
                                    const std::vector<std::string>& names, const std::string& what,
                                    const std::string& hint) const {
  const auto unused = quant::unused_pattern(patterns, names);
  if (!unused) return;
  if (unused->shadowed)
    throw_usage(flag + patterns[unused->index] +
                    " is never reached: patterns before it take all that it matches",
                "the first pattern that matches counts: put it before them, or leave it out");
  throw_usage(flag + patterns[unused->index] + " matches no " + what + " of this model", hint);
}

void ParameterLoader::check_precision_patterns() {
  std::vector<std::string> names, patterns;
  for (const auto& [name, w] : params_->weights_) names.push_back(name);
  for (const quant::AmpRule& rule : options_.precision_overrides) patterns.push_back(rule.pattern);
  refuse_unused("--precision_override ", patterns, names, "weight",
                "train --dry_run --show_precision lists them");
  std::vector<std::pair<int64_t, std::string>> kept(patterns.size());
  for (const auto& [name, w] : params_->weights_) {
    const bool codes = w.packed.elem == Elem::kNf4 || is_fp8(w.packed.elem);
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (!quant::layer_match(patterns[i], name)) continue;
      const bool follows = options_.precision_overrides[i].storage == quant::Storage::kFp8
                               ? w.packed.elem != Elem::kNf4
                               : !codes;
      if (!follows) {
        ++kept[i].first;
        kept[i].second = w.packed.elem == Elem::kNf4 ? "NF4" : "FP8";
      }
      break;
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i)
    if (kept[i].first > 0)
      params_->notes_.push_back(
          options_.precision_overrides[i].reason + " leaves " + std::to_string(kept[i].first) +
          (kept[i].first == 1 ? " weight in the " : " weights in the ") + kept[i].second +
          " codes that the file has; inputs and gradients follow it");
}

void ParameterLoader::stripe_to_f32(const ir::TensorEntry& entry, const uint8_t* rows, int64_t row0,
                                    int64_t count, float* out) const {
  const int64_t cols = entry.cols();
  const uint64_t stride = entry.row_stride();
  pool_.run(count, [&](int64_t i, int) {
    const uint8_t* src = rows + static_cast<uint64_t>(i) * stride;
    float* dst = out + i * cols;
    switch (entry.dtype) {
      case DType::kF32:
        std::memcpy(dst, src, static_cast<size_t>(cols) * 4);
        break;
      case DType::kBF16:
        kernels::cast(src, Elem::kBf16, dst, Elem::kF32, cols, false);
        break;
      case DType::kE4M3LA: {
        kernels::fp8_decode(Elem::kE4M3, src, cols, dst);
        const int64_t blocks = (cols + entry.block_cols - 1) / entry.block_cols;
        const float* scale = scales_.data() + (row0 + i) / entry.block_rows * blocks;
        for (int64_t c = 0; c < cols; ++c) dst[c] *= scale[c / entry.block_cols];
        break;
      }
      default:
        tensor::to_f32(entry.dtype, src, static_cast<size_t>(cols), dst);
        break;  // shape_weight lets no other in
    }
  });
}

void ParameterLoader::pack_stripe(Weight* weight, const ir::TensorEntry& entry, const uint8_t* rows,
                                  int64_t row0, int64_t count) {
  const int64_t cols = entry.cols();
  const Elem elem = weight->packed.elem;
  const bool same = (elem == Elem::kF32 && entry.dtype == DType::kF32) ||
                    (elem == Elem::kBf16 && entry.dtype == DType::kBF16) ||
                    (elem == Elem::kE4M3 && entry.dtype == DType::kE4M3LA);
  constexpr int64_t kRows = 128;
  const int64_t tasks = (count + kRows - 1) / kRows;
  if (elem == Elem::kNf4) {
    const int64_t blocks = kernels::nf4_blocks(cols), ld = static_cast<int64_t>(entry.row_stride());
    pool_.run(tasks, [&](int64_t t, int) {
      const int64_t r0 = t * kRows, r1 = std::min(count, r0 + kRows);
      kernels::pack_nf4_rows(weight->packed, rows + r0 * ld, ld,
                             scales_.data() + (row0 + r0) * blocks, blocks, row0 + r0, row0 + r1);
    });
    return;
  }
  if (same) {
    const int64_t ld = static_cast<int64_t>(entry.row_stride()) / kernels::elem_bytes(elem);
    pool_.run(tasks, [&](int64_t t, int) {
      const int64_t r0 = t * kRows, r1 = std::min(count, r0 + kRows);
      kernels::pack_weight_rows(weight->packed,
                                rows + static_cast<uint64_t>(r0) * entry.row_stride(), ld,
                                row0 + r0, row0 + r1);
    });
    return;
  }
  AlignedBuffer dense(static_cast<size_t>(count * cols) * sizeof(float));
  stripe_to_f32(entry, rows, row0, count, dense.as<float>());
  AlignedBuffer narrow(static_cast<size_t>(count * cols) * 2);
  const bool one_scale = is_fp8(elem) && options_.recipe.scales != quant::ScaleRecipe::kBlock;
  pool_.run(tasks, [&](int64_t t, int) {
    const int64_t r0 = t * kRows, r1 = std::min(count, r0 + kRows);
    pack_rows(weight, {dense.as<float>() + r0 * cols, cols, Elem::kF32}, one_scale, row0 + r0,
              row0 + r1, narrow.data() + r0 * cols * 2, nullptr, nullptr);
  });
}

// Largest magnitude of a tensor of the file, for a scale that all its rows share.
float ParameterLoader::largest(const ir::TensorEntry& entry) const {
  const int64_t stride = static_cast<int64_t>(entry.row_stride()),
                stripe = std::max<int64_t>(128, kStripeBytes / stride);
  AlignedBuffer rows(static_cast<size_t>(std::min(stripe, entry.rows()) * stride));
  float amax = 0.0f;
  for (int64_t r = 0; r < entry.rows(); r += stripe) {
    const int64_t count = std::min(stripe, entry.rows() - r);
    reader_.read_rows(entry, r, r + count, {rows.data(), static_cast<size_t>(count * stride)});
    AlignedBuffer dense(static_cast<size_t>(count * entry.cols()) * sizeof(float));
    stripe_to_f32(entry, rows.data(), r, count, dense.as<float>());
    amax = std::max(
        amax, kernels::amax_rows({dense.data(), entry.cols(), Elem::kF32}, entry.cols(), 0, count));
  }
  return amax;
}

// Shape and element of a packed weight; which scales an FP8 tensor of the file has.
void ParameterLoader::shape_weight(Weight* weight) {
  const ir::TensorEntry& entry = reader_.model().stored_tensor(weight->name);
  if (!tensor::converts_to_f32(entry.dtype) && entry.dtype != DType::kE4M3LA &&
      entry.dtype != DType::kNf4)
    throw_bad_data(
        reader_.folder().string() + ": " + entry.name,
        "weights stored as " + std::string(tensor::dtype_name(entry.dtype)) + " cannot be run",
        "convert the model again");
  kernels::PackedWeight& packed = weight->packed;
  packed.n = entry.rows();
  packed.k = entry.cols();
  if (entry.dtype == DType::kNf4 && options_.train_all)
    throw_usage(
        reader_.folder().string() + " holds NF4 weights, which full fine-tuning cannot train",
        "use --finetuning_type qlora, or convert with --quantize bf16");
  packed.elem = target_elem(entry, weight);
  if (entry.dtype == DType::kE4M3LA) {
    const bool ours = entry.block_rows == kernels::kWeightBlock &&
                      entry.block_cols == kernels::kWeightBlock &&
                      reader_.read_scale_exponents(entry, &weight->exponents);
    // Other scales (of a foreign FP8 checkpoint) are applied in fp32 and rounded once to bf16; not
    // at all where everything is fp32. What is trained gets codes of its own from its master.
    if (!ours && is_fp8(packed.elem) && !options_.train_all) {
      packed.elem = weight->precision == kernels::Precision::kF32 ? Elem::kF32 : Elem::kBf16;
      weight->reason += "; scales of the file that are applied once";
      ++params_->decoded_weights_;
    }
    if (!is_fp8(packed.elem)) weight->exponents.clear();
  }
  const int64_t blocks = ((packed.n + kernels::kWeightBlock - 1) / kernels::kWeightBlock) *
                         ((packed.k + kernels::kWeightBlock - 1) / kernels::kWeightBlock);
  if (is_fp8(packed.elem)) weight->exponents.resize(static_cast<size_t>(blocks));
}

void ParameterLoader::load_weight(Weight* weight) {
  const ir::TensorEntry& entry = reader_.model().stored_tensor(weight->name);
  kernels::PackedWeight& packed = weight->packed;
  scales_.clear();
  if (!entry.scale.empty()) scales_ = reader_.read_f32(entry.scale);
  if (packed.elem == Elem::kNf4 &&
      !kernels::all_finite(scales_.data(), Elem::kF32, static_cast<int64_t>(scales_.size())))
    throw_bad_data(reader_.folder().string() + ": " + entry.scale,
                   "holds values that are not finite", "convert the model again");
  packed.scale_exps = weight->exponents.empty() ? nullptr : weight->exponents.data();

  if (weight->trainable < 0 && is_fp8(packed.elem) && entry.dtype != DType::kE4M3LA &&
      options_.recipe.scales != quant::ScaleRecipe::kBlock)
    set_one_scale(weight, largest(entry));
  const int64_t stride = static_cast<int64_t>(entry.row_stride());
  const int64_t stripe = std::max<int64_t>(128, kStripeBytes / stride / 128 * 128);
  AlignedBuffer rows(static_cast<size_t>(std::min(stripe, packed.n) * stride));
  for (int64_t r = 0; r < packed.n; r += stripe) {
    const int64_t count = std::min(stripe, packed.n - r);
    reader_.read_rows(entry, r, r + count, {rows.data(), static_cast<size_t>(count * stride)});
    if (weight->trainable >= 0) {
      load_master(*weight, entry, rows.data(), r, count);
    } else {
      pack_stripe(weight, entry, rows.data(), r, count);
    }
  }
}

void ParameterLoader::load_master(const Weight& weight, const ir::TensorEntry& entry,
                                  const uint8_t* rows, int64_t row0, int64_t count) {
  const kernels::Mat to = params_->master_rows(weight.trainable, row0);
  void* data = const_cast<void*>(to.data);
  if (to.elem == Elem::kF32)
    return stripe_to_f32(entry, rows, row0, count, static_cast<float*>(data));
  const int64_t n = count * entry.cols();
  AlignedBuffer wide(static_cast<size_t>(n) * sizeof(float));
  stripe_to_f32(entry, rows, row0, count, wide.as<float>());
  kernels::cast(wide.data(), Elem::kF32, data, Elem::kBf16, n, false);
}

void ParameterLoader::load_vector(VectorParam* vector) {
  std::vector<float> values = reader_.read_f32(reader_.model().stored_tensor(vector->name).name);
  if (vector->trainable >= 0)
    std::memcpy(params_->master(vector->trainable), values.data(), values.size() * sizeof(float));
  else
    vector->own = std::move(values);
}

// A: Kaiming uniform with a = sqrt(5), that is uniform in +-1/sqrt(k), as PEFT; B: zero (fresh
// memory of a mapping).
void ParameterLoader::init_adapters() {
  support::Sm4Random random(options_.lora_options.seed);
  for (auto& [path, adapter] : params_->adapters_) {
    float* a = params_->master(adapter.a);
    const int64_t n = adapter.rank * adapter.k;
    const float bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(adapter.k)));
    random.uniform(support::kStreamInit, static_cast<uint64_t>(adapter.a), 0,
                   {a, static_cast<size_t>(n)});
    for (int64_t i = 0; i < n; ++i) a[i] = (2.0f * a[i] - 1.0f) * bound;
    std::memset(params_->master(adapter.b_t), 0,
                static_cast<size_t>(adapter.rank * adapter.n) * sizeof(float));
  }
}

}  // namespace loongforge::graph
