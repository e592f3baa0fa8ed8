// FP8 checkpoints: OCP E4M3 codes with multipliers, in the layouts "fp8" (finegrained blocks, or
// one scale per tensor), "compressed-tensors" (per tensor, channel, group or block) and
// "fbgemm_fp8" (per row).
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "formats/quant_methods.h"
#include "support/regex.h"
#include "tensor/convert.h"

namespace loongforge::formats {
namespace {

using support::Json;
using tensor::DType;

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kScales[] = {".weight_scale_inv", ".weight_scale"};
constexpr std::string_view kZeroPoint = ".weight_zero_point";
constexpr std::string_view kCarried[] = {".input_scale",      ".input_scale_ub",
                                         ".input_zero_point", ".activation_scale",
                                         ".output_scale",     kZeroPoint};

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// What the configuration says of one module's scales.
struct Granularity {
  enum Kind { kTensor, kChannel, kBlock, kAny } kind = kAny;  // kAny: as the scale's shape shows
  int64_t rows = 0, cols = 0;  // kBlock; kAny: the block where the shape is neither of the others
};

// Whether a list of modules that are left alone names this one or what holds it. (Substrings, which
// some loaders accept as well, are not taken: this only finds contradictions.)
bool names_module(const std::string& entry, const std::string& module) {
  return module == entry ||
         (module.size() > entry.size() && module.starts_with(entry) && module[entry.size()] == '.');
}

// "re:" and an expression for the beginning of the path, as Python's re.match.
bool pattern_names_module(const std::string& entry, const std::string& module,
                          const std::string& where) {
  if (!entry.starts_with("re:")) return names_module(entry, module);
  const support::Regex regex("\\A(?:" + entry.substr(3) + ")", where);
  support::Regex::Matcher matcher;
  size_t begin, end;
  return regex.find(matcher, module, 0, &begin, &end);
}

class Fp8Plan {
 public:
  // granularity: of a module, or nullopt where the configuration leaves it alone.
  Fp8Plan(const TensorSource& stored,
          std::function<std::optional<Granularity>(const std::string&)> granularity)
      : stored_(stored), granularity_(std::move(granularity)) {}

  QuantPlan run() {
    for (const StoredTensor& tensor : stored_.tensors()) sort_in(tensor);
    for (auto& [module, parts] : modules_) complete(module, parts);
    return std::move(plan_);
  }

 private:
  struct Parts {
    const StoredTensor *weight = nullptr, *scale = nullptr;
    std::vector<const StoredTensor*> carried;
  };

  void sort_in(const StoredTensor& tensor) {
    for (std::string_view suffix : kScales) {
      if (!tensor.name.ends_with(suffix)) continue;
      Parts& parts = modules_[module_of(tensor, suffix)];
      if (parts.scale != nullptr) {
        throw_bad_data(tensor.where(), "stands beside " + parts.scale->name,
                       "a weight has one of them");
      }
      parts.scale = &tensor;
      return;
    }
    for (std::string_view suffix : kCarried) {
      if (!tensor.name.ends_with(suffix)) continue;
      modules_[module_of(tensor, suffix)].carried.push_back(&tensor);
      return;
    }
    if (tensor.type.find("F8") == std::string::npos && tensor.dtype != DType::kF8E4M3) return;
    if (tensor.dtype != DType::kF8E4M3) {
      throw_bad_data(tensor.where(), "has the type " + tensor.type + ", FP8 weights are F8_E4M3");
    }
    if (!tensor.name.ends_with(kWeight) || tensor.shape.size() != 2 || tensor.elements() == 0) {
      throw_bad_data(tensor.where(), "has the type F8_E4M3 and is no matrix <module>.weight");
    }
    modules_[module_of(tensor, kWeight)].weight = &tensor;
  }

  static std::string module_of(const StoredTensor& tensor, std::string_view suffix) {
    return tensor.name.substr(0, tensor.name.size() - suffix.size());
  }

  void complete(const std::string& module, const Parts& parts) {
    const std::string name = module + std::string(kWeight);
    if (parts.weight == nullptr) {
      const StoredTensor& orphan = parts.scale != nullptr ? *parts.scale : *parts.carried.front();
      const StoredTensor* weight = stored_.find(name);
      throw_bad_data(orphan.where(), weight == nullptr ? "belongs to " + name + ", which is absent"
                                                       : "belongs to " + name + ", which is " +
                                                             weight->type + ", not F8_E4M3");
    }
    const StoredTensor& weight = *parts.weight;
    if (parts.scale == nullptr) {
      throw_bad_data(weight.where(), "is F8_E4M3 and has no weight_scale_inv or weight_scale",
                     "is the download complete?");
    }
    const std::optional<Granularity> granularity = granularity_(module);
    if (!granularity) {
      throw_bad_data(weight.where(),
                     "is F8_E4M3, but quantization_config leaves that module unquantised");
    }
    check_scale_type(*parts.scale);
    QuantizedTensor out;
    out.name = name;
    out.shape = weight.shape;
    out.scheme = QuantScheme::kFp8;
    out.codes = &weight;
    out.scale = parts.scale;
    set_block(*granularity, &out);
    out.companions = parts.carried;
    for (const StoredTensor* each : parts.carried) {
      if (!each->dtype || each->elements() == 0 || each->shape.size() > 2) {
        throw_bad_data(each->where(), "has the type " + each->type + " and the shape " +
                                          shape_text(each->shape) + ", which no scale has");
      }
      if (each->name.ends_with(kZeroPoint)) check_zero(*each);
      plan_.claimed.push_back(each->name);
    }
    plan_.claimed.push_back(weight.name);
    plan_.claimed.push_back(parts.scale->name);
    plan_.tensors.push_back(std::move(out));
  }

  static void check_scale_type(const StoredTensor& scale) {
    if (scale.dtype == DType::kF32 || scale.dtype == DType::kBF16 || scale.dtype == DType::kF16)
      return;
    throw_bad_data(scale.where(), "has the type " + scale.type + ", scales are F32, BF16 or F16");
  }

  // Symmetric weights have none, or zeros.
  void check_zero(const StoredTensor& tensor) const {
    std::vector<uint8_t> bytes(tensor.bytes);
    stored_.read_range(tensor, 0, bytes);
    for (uint8_t byte : bytes) {
      if (byte != 0)
        throw_bad_data(tensor.where(), "is not zero: asymmetric FP8 weights cannot be read");
    }
  }

  // Which elements a scale covers. Sizes of a file's tensors cannot overflow.
  static void set_block(const Granularity& want, QuantizedTensor* out) {
    const int64_t rows = out->shape[0], cols = out->shape[1];
    const std::vector<int64_t>& shape = out->scale->shape;
    const bool one = out->scale->elements() == 1 && shape.size() <= 2;
    const bool each_row =
        shape == std::vector<int64_t>{rows, 1} || shape == std::vector<int64_t>{rows};
    const auto block = [&](int64_t r, int64_t c) {
      out->block_rows = r;
      out->block_cols = c;
    };
    std::vector<int64_t> blocks;
    if (want.rows > 0 && want.cols > 0)
      blocks = {ceil_div(rows, want.rows), ceil_div(cols, want.cols)};
    const bool fits = !blocks.empty() && shape == blocks;
    switch (want.kind) {
      case Granularity::kTensor:
        if (one) return block(rows, cols);
        break;
      case Granularity::kChannel:
        if (each_row) return block(1, cols);
        break;
      case Granularity::kBlock:
        if (fits) return block(want.rows, want.cols);
        break;
      case Granularity::kAny:
        if (one) return block(rows, cols);
        if (each_row) return block(1, cols);
        if (fits) return block(want.rows, want.cols);
        break;
    }
    std::string asked = "one scale per tensor or per row";
    if (want.kind == Granularity::kTensor) asked = "one scale per tensor";
    if (want.kind == Granularity::kChannel) asked = "one scale per row: " + shape_text({rows, 1});
    if (want.kind == Granularity::kBlock) {
      asked = "blocks of " + shape_text({want.rows, want.cols}) + ": " + shape_text(blocks);
    }
    throw_bad_data(out->scale->where(), "has the shape " + shape_text(shape) +
                                            ", but quantization_config means for " + out->name +
                                            " " + shape_text(out->shape) + " " + asked);
  }

  const TensorSource& stored_;
  std::function<std::optional<Granularity>(const std::string&)> granularity_;
  std::map<std::string, Parts> modules_;  // by name: errors and order do not depend on the file
  QuantPlan plan_;
};

// [r, c] or "rxc" of a positive size each; nullopt where the key is absent or null.
std::optional<std::pair<int64_t, int64_t>> block_size(const Keys& keys, const char* key) {
  const Json* value = keys.find(key);
  if (value == nullptr) return std::nullopt;
  const auto good = [](const Json& each) {
    return each.is_int() && each.as_int() >= 1 && each.as_int() <= kMaxSize;
  };
  if (!value->is_array() || value->as_array().size() != 2 || !good(value->as_array()[0]) ||
      !good(value->as_array()[1])) {
    keys.fail(key, "is " + shown(*value) + ", not two sizes [rows, columns]");
  }
  return std::pair{value->as_array()[0].as_int(), value->as_array()[1].as_int()};
}

void check_word(const Keys& keys, const char* key, std::initializer_list<std::string_view> known,
                const std::string& hint = {}) {
  const std::string value = keys.string(key, *known.begin());
  std::string list;
  for (std::string_view each : known) {
    if (value == each) return;
    list += (list.empty() ? "" : ", ") + std::string(each);
  }
  keys.fail(key, "is \"" + support::printable(value, 40) + "\", which cannot be read",
            "known: " + list + (hint.empty() ? "" : "; " + hint));
}

// One group of compressed-tensors: which modules, and how their weights are scaled.
struct Group {
  std::vector<std::string> targets;
  Granularity granularity;
};

Granularity parse_weights(const Keys& weights) {
  if (weights.integer("num_bits").value_or(0) != 8)
    weights.fail("num_bits", "is not 8", "only FP8 weights can be read");
  check_word(weights, "type", {"float"}, "integers of 8 bits are another format");
  if (!weights.boolean("symmetric", true))
    weights.fail("symmetric", "is false", "asymmetric FP8 weights cannot be read");
  if (weights.boolean("dynamic", false)) weights.fail("dynamic", "is true: weights have no scale");
  check_word(weights, "strategy", {"tensor", "channel", "block", "group"});
  const std::string strategy = weights.string("strategy", "tensor");
  if (strategy == "tensor") return {Granularity::kTensor};
  if (strategy == "channel") return {Granularity::kChannel};
  if (strategy == "group") {
    const std::optional<int64_t> size = weights.size("group_size");
    if (!size) weights.fail("group_size", "is missing");
    return {Granularity::kBlock, 1, *size};
  }
  const auto block = block_size(weights, "block_structure");
  if (!block) weights.fail("block_structure", "is missing");
  return {Granularity::kBlock, block->first, block->second};
}

std::vector<Group> parse_groups(const Keys& config, const std::string& where) {
  const Json* groups = config.find("config_groups");
  if (groups == nullptr || !groups->is_object() || groups->as_object().empty())
    config.fail("config_groups", groups == nullptr ? "is missing" : "is no object with groups");
  std::vector<Group> out;
  for (const auto& [name, group] : groups->as_object()) {
    const std::string at = "config_groups." + support::printable(name, 40);
    if (!group.is_object()) config.fail(at, "is no object");
    const Keys keys(group, where, "quantization_config." + at + ".");
    check_word(keys, "format", {"float-quantized", "naive-quantized"});
    const Json* weights = keys.find("weights");
    if (weights == nullptr || !weights->is_object()) keys.fail("weights", "is no object");
    Group& added = out.emplace_back();
    added.targets = keys.strings("targets");
    added.granularity =
        parse_weights(Keys(*weights, where, "quantization_config." + at + ".weights."));
  }
  return out;
}

float e4m3(int code) {
  const int e = code >> 3 & 15, m = code & 7;
  if (e == 15 && m == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = e == 0 ? std::ldexp(static_cast<float>(m), -9)
                                 : std::ldexp(static_cast<float>(8 + m), e - 10);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

const std::array<float, 256>& e4m3_table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> out{};
    for (int code = 0; code < 256; ++code) out[static_cast<size_t>(code)] = e4m3(code);
    return out;
  }();
  return table;
}

}  // namespace

QuantPlan plan_finegrained_fp8(const TensorSource& stored, const Keys& config) {
  check_word(config, "fmt", {"e4m3"}, "take the bf16 checkpoint of this model");
  check_word(config, "activation_scheme", {"dynamic", "static"});
  const std::vector<std::string> kept = config.strings("modules_to_not_convert");
  Granularity granularity;
  if (const auto block = block_size(config, "weight_block_size")) {
    granularity = {Granularity::kBlock, block->first, block->second};
  } else if (!config.has("weight_block_size")) {
    // Left out: the loaders' default. Said to be null: one scale per tensor or row.
    granularity = {Granularity::kAny, 128, 128};
  }
  return Fp8Plan(stored,
                 [&](const std::string& module) -> std::optional<Granularity> {
                   for (const std::string& each : kept) {
                     if (names_module(each, module)) return std::nullopt;
                   }
                   return granularity;
                 })
      .run();
}

QuantPlan plan_fbgemm_fp8(const TensorSource& stored, const Keys& config) {
  const std::vector<std::string> kept = config.strings("modules_to_not_convert");
  return Fp8Plan(stored,
                 [&](const std::string& module) -> std::optional<Granularity> {
                   for (const std::string& each : kept) {
                     if (names_module(each, module)) return std::nullopt;
                   }
                   return Granularity{Granularity::kChannel};
                 })
      .run();
}

QuantPlan plan_compressed_tensors(const TensorSource& stored, const Keys& config) {
  check_word(config, "format", {"float-quantized", "naive-quantized"},
             "take the bf16 or an FP8 checkpoint of this model");
  check_word(config, "quantization_status", {"compressed", "frozen"});
  if (const Json* cache = config.find("kv_cache_scheme"))
    config.fail("kv_cache_scheme", "is " + shown(*cache) + ", which cannot be read");
  if (const Json* sparsity = config.find("sparsity_config")) {
    const std::string format = sparsity->get_string("format", "dense");
    if (format != "dense")
      config.fail("sparsity_config.format",
                  "is \"" + support::printable(format, 40) + "\", sparse weights cannot be read");
  }
  const std::string& where = config.where();
  const std::vector<std::string> ignored = config.strings("ignore");
  const std::vector<Group> groups = parse_groups(config, where);
  return Fp8Plan(stored,
                 [&](const std::string& module) -> std::optional<Granularity> {
                   for (const std::string& each : ignored) {
                     if (pattern_names_module(each, module, where)) return std::nullopt;
                   }
                   for (const Group& group : groups) {
                     for (const std::string& target : group.targets) {
                       // A class of modules, or modules by name.
                       if (target == "Linear" || pattern_names_module(target, module, where))
                         return group.granularity;
                     }
                   }
                   return std::nullopt;
                 })
      .run();
}

void read_fp8_rows(const TensorSource& stored, const QuantizedTensor& tensor, int64_t row0,
                   int64_t row1, std::span<float> out) {
  if (row0 >= row1) return;
  const int64_t cols = tensor.shape[1], blocks = ceil_div(cols, tensor.block_cols);
  const int64_t first = row0 / tensor.block_rows, last = (row1 - 1) / tensor.block_rows + 1;
  const size_t count = static_cast<size_t>((last - first) * blocks);
  const size_t bytes = tensor::dtype_bytes(*tensor.scale->dtype);
  std::vector<uint8_t> raw(count * bytes);
  stored.read_range(*tensor.scale, static_cast<uint64_t>(first * blocks) * bytes, raw);
  std::vector<float> scales(count);
  tensor::to_f32(*tensor.scale->dtype, raw.data(), count, scales.data());
  std::vector<uint8_t> codes(out.size());
  stored.read_range(*tensor.codes, static_cast<uint64_t>(row0 * cols), codes);
  const std::array<float, 256>& value = e4m3_table();
  for (int64_t r = row0; r < row1; ++r) {
    const float* scale = scales.data() + (r / tensor.block_rows - first) * blocks;
    const size_t at = static_cast<size_t>((r - row0) * cols);
    for (int64_t c0 = 0, b = 0; c0 < cols; c0 += tensor.block_cols, ++b) {
      const int64_t c1 = std::min(cols - c0, tensor.block_cols) + c0;
      for (int64_t c = c0; c < c1; ++c)
        out[at + static_cast<size_t>(c)] = value[codes[at + static_cast<size_t>(c)]] * scale[b];
    }
  }
}

}  // namespace loongforge::formats
