// bitsandbytes checkpoints: NF4 codes of the flattened weight, an absmax per block of it, a JSON in
// a tensor of bytes that says how; the absmax may be quantised once more (double quantisation).
// Source: bitsandbytes functional.py (QuantState), backends/default/ops.py.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "formats/quant_methods.h"
#include "kernels/nf4_format.h"

namespace loongforge::formats {
namespace {

using support::Json;
using tensor::DType;

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kAbsmax = ".weight.absmax";
constexpr std::string_view kQuantMap = ".weight.quant_map";
constexpr std::string_view kNestedAbsmax = ".weight.nested_absmax";
constexpr std::string_view kNestedMap = ".weight.nested_quant_map";
constexpr std::string_view kState = ".weight.quant_state.bitsandbytes__";
constexpr std::string_view kInt8Scale = ".SCB";
constexpr size_t kMaxStateBytes = 1 << 16;

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

void read_floats(const TensorSource& stored, const StoredTensor& tensor, int64_t first,
                 std::span<float> out) {
  stored.read_range(tensor, static_cast<uint64_t>(first) * 4,
                    {reinterpret_cast<uint8_t*>(out.data()), out.size_bytes()});
}

class Nf4Plan {
 public:
  explicit Nf4Plan(const TensorSource& stored) : stored_(stored) {}

  QuantPlan run() {
    for (const StoredTensor& tensor : stored_.tensors()) sort_in(tensor);
    for (auto& [module, parts] : modules_) complete(module, parts);
    return std::move(plan_);
  }

 private:
  struct Parts {
    const StoredTensor *absmax = nullptr, *map = nullptr, *nested_absmax = nullptr,
                       *nested_map = nullptr, *state = nullptr;
  };

  void sort_in(const StoredTensor& tensor) {
    const std::string& name = tensor.name;
    if (name.ends_with(kInt8Scale)) {
      throw_bad_data(tensor.where(), "belongs to a weight of 8-bit integers, which cannot be read",
                     "take the bf16 or the 4-bit (NF4) checkpoint of this model");
    }
    const size_t state = name.rfind(kState);
    if (state != std::string::npos) {
      const std::string type = name.substr(state + kState.size());
      if (type != "nf4") {
        throw_bad_data(tensor.where(),
                       "says " + support::printable(type, 20) + ", only NF4 can be read",
                       "take the bf16 or the NF4 checkpoint of this model");
      }
      take(name.substr(0, state), &Parts::state, tensor);
      return;
    }
    const std::pair<std::string_view, const StoredTensor * Parts::*> kinds[] = {
        {kAbsmax, &Parts::absmax},
        {kQuantMap, &Parts::map},
        {kNestedAbsmax, &Parts::nested_absmax},
        {kNestedMap, &Parts::nested_map}};
    for (const auto& [suffix, part] : kinds) {
      if (!name.ends_with(suffix)) continue;
      take(name.substr(0, name.size() - suffix.size()), part, tensor);
      return;
    }
  }

  void take(const std::string& module, const StoredTensor* Parts::*part,
            const StoredTensor& tensor) {
    modules_[module].*part = &tensor;
    plan_.claimed.push_back(tensor.name);
  }

  const StoredTensor& need(const std::string& module, const StoredTensor* part,
                           std::string_view suffix, const StoredTensor& of) const {
    if (part == nullptr) {
      throw_bad_data(
          of.where(),
          "belongs to an NF4 weight whose " + module + std::string(suffix) + " is absent",
          "is the download complete?");
    }
    return *part;
  }

  static void check(const StoredTensor& tensor, std::initializer_list<DType> types,
                    int64_t elements, const std::string& of) {
    bool known = false;
    std::string names;
    for (DType type : types) {
      known = known || tensor.dtype == type;
      names += (names.empty() ? "" : " or ") + std::string(tensor::dtype_name(type));
    }
    if (!known) throw_bad_data(tensor.where(), "has the type " + tensor.type + ", not " + names);
    if (tensor.elements() != elements) {
      throw_bad_data(tensor.where(), "has " + std::to_string(tensor.elements()) + " elements, " +
                                         of + " needs " + std::to_string(elements));
    }
  }

  void check_table(const StoredTensor& map) const {
    check(map, {DType::kF32}, 16, "a table of 4 bits");
    float table[16];
    read_floats(stored_, map, 0, table);
    if (std::memcmp(table, kernels::kNf4Values, sizeof table) != 0)
      throw_bad_data(map.where(), "is not the table of NF4, so the weight is of another format");
  }

  void complete(const std::string& module, const Parts& parts) {
    const StoredTensor* any = parts.state;
    for (const StoredTensor* each :
         {parts.absmax, parts.map, parts.nested_absmax, parts.nested_map}) {
      if (any == nullptr) any = each;
    }
    const StoredTensor& state = need(module, parts.state, std::string(kState) + "nf4", *any);
    const StoredTensor& weight =
        need(module, stored_.find(module + std::string(kWeight)), kWeight, *any);
    const StoredTensor& absmax = need(module, parts.absmax, kAbsmax, *any);
    check_table(need(module, parts.map, kQuantMap, *any));
    QuantizedTensor out;
    out.name = weight.name;
    out.scheme = QuantScheme::kNf4;
    out.codes = &weight;
    out.scale = &absmax;
    const Json json = read_state(state);
    const std::string where = state.where();
    const Keys keys(json, where);
    read_shape(keys, &out);
    const int64_t elements = out.shape[0] * out.shape[1];
    // Whatever type the codes are stored as, they are bytes.
    if (weight.bytes != static_cast<uint64_t>(ceil_div(elements, 2))) {
      throw_bad_data(weight.where(), "has " + std::to_string(weight.bytes) + " bytes, NF4 of " +
                                         shape_text(out.shape) + " needs " +
                                         std::to_string(ceil_div(elements, 2)));
    }
    const int64_t blocks = ceil_div(elements, out.nf4_block);
    const bool nested = json.find("nested_offset") != nullptr;
    check(absmax, {nested ? DType::kU8 : DType::kF32}, blocks, weight.name);
    if (nested) {
      read_nested(keys, module, parts, blocks, &out);
    } else if (parts.nested_absmax != nullptr || parts.nested_map != nullptr) {
      throw_bad_data(where,
                     "lacks nested_offset, but " + module + std::string(kAbsmax) + " is quantised");
    }
    plan_.claimed.push_back(weight.name);
    plan_.tensors.push_back(std::move(out));
  }

  Json read_state(const StoredTensor& state) const {
    if (state.dtype != DType::kU8 || state.bytes > kMaxStateBytes)
      throw_bad_data(state.where(), "is no short text in U8, which a quant_state is");
    std::string text(state.bytes, '\0');
    stored_.read_range(state, 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
    Json json = Json::parse(text, state.where());
    if (!json.is_object()) throw_bad_data(state.where(), "is no JSON object");
    return json;
  }

  static void read_shape(const Keys& keys, QuantizedTensor* out) {
    if (keys.string("quant_type", "") != "nf4") keys.fail("quant_type", "is not \"nf4\"");
    out->nf4_block = keys.required_size("blocksize");
    if (out->nf4_block % 2 != 0) keys.fail("blocksize", "is odd");
    const Json* shape = keys.find("shape");
    if (shape == nullptr || !shape->is_array()) keys.fail("shape", "is no list");
    for (const Json& extent : shape->as_array()) {
      if (!extent.is_int() || extent.as_int() < 1 || extent.as_int() > kMaxSize)
        keys.fail("shape", "is " + shown(*shape) + ", not a list of sizes");
      out->shape.push_back(extent.as_int());
    }
    if (out->shape.size() != 2)
      keys.fail("shape", "is " + shown(*shape) + ", not that of a matrix");
  }

  void read_nested(const Keys& keys, const std::string& module, const Parts& parts, int64_t blocks,
                   QuantizedTensor* out) const {
    out->nested_block = keys.required_size("nested_blocksize");
    if (keys.string("nested_dtype", "float32") != "float32")
      keys.fail("nested_dtype", "is not \"float32\"");
    const std::optional<double> offset = keys.number("nested_offset");
    // bitsandbytes keeps it in fp32.
    out->nested_offset =
        static_cast<float>(offset.value_or(std::numeric_limits<double>::infinity()));
    if (!std::isfinite(out->nested_offset)) keys.fail("nested_offset", "is not a finite number");
    out->nested_absmax = &need(module, parts.nested_absmax, kNestedAbsmax, *out->scale);
    out->nested_map = &need(module, parts.nested_map, kNestedMap, *out->scale);
    check(*out->nested_absmax, {DType::kF32}, ceil_div(blocks, out->nested_block), out->name);
    check(*out->nested_map, {DType::kF32}, 256, "a table of 8 bits");
  }

  const TensorSource& stored_;
  std::map<std::string, Parts> modules_;  // by name: errors and order do not depend on the file
  QuantPlan plan_;
};

}  // namespace

QuantPlan plan_bitsandbytes(const TensorSource& stored, const Keys& config) {
  const std::string hint = "take the bf16 or the NF4 checkpoint of this model";
  if (config.boolean("load_in_8bit", false))
    config.fail("load_in_8bit", "is true: 8-bit integers cannot be read", hint);
  if (!config.boolean("load_in_4bit", false)) config.fail("load_in_4bit", "is not true", hint);
  const std::string type = config.string("bnb_4bit_quant_type", "fp4");
  if (type != "nf4") {
    config.fail("bnb_4bit_quant_type",
                "is \"" + support::printable(type, 20) + "\", only nf4 can be read", hint);
  }
  // Which modules are quantised shows in the files; the list of those that are not must be a list.
  config.strings("llm_int8_skip_modules");
  return Nf4Plan(stored).run();
}

std::vector<float> read_nf4_absmax(const TensorSource& stored, const QuantizedTensor& tensor,
                                   int64_t first, int64_t last) {
  std::vector<float> absmax(static_cast<size_t>(last - first));
  if (absmax.empty()) return absmax;
  if (tensor.nested_absmax == nullptr) {
    read_floats(stored, *tensor.scale, first, absmax);
    return absmax;
  }
  std::vector<uint8_t> codes(absmax.size());
  stored.read_range(*tensor.scale, static_cast<uint64_t>(first), codes);
  float table[256];
  read_floats(stored, *tensor.nested_map, 0, table);
  const int64_t block = tensor.nested_block, first_block = first / block;
  std::vector<float> scales(static_cast<size_t>((last - 1) / block - first_block + 1));
  read_floats(stored, *tensor.nested_absmax, first_block, scales);
  for (size_t i = 0; i < codes.size(); ++i) {
    const int64_t at = (first + static_cast<int64_t>(i)) / block - first_block;
    const float product = table[codes[i]] * scales[static_cast<size_t>(at)];
    absmax[i] = product + tensor.nested_offset;
  }
  return absmax;
}

void read_nf4_rows(const TensorSource& stored, const QuantizedTensor& tensor, int64_t row0,
                   int64_t row1, std::span<float> out) {
  if (row0 >= row1) return;
  const int64_t begin = row0 * tensor.shape[1], end = row1 * tensor.shape[1];
  const int64_t first = begin / tensor.nf4_block;
  const std::vector<float> absmax =
      read_nf4_absmax(stored, tensor, first, (end - 1) / tensor.nf4_block + 1);
  std::vector<uint8_t> bytes(static_cast<size_t>(ceil_div(end, 2) - begin / 2));
  stored.read_range(*tensor.codes, static_cast<uint64_t>(begin / 2), bytes);
  for (int64_t i = begin; i < end; ++i) {
    const uint8_t both = bytes[static_cast<size_t>(i / 2 - begin / 2)];
    const int code = i % 2 == 0 ? both >> 4 : both & 15;
    out[static_cast<size_t>(i - begin)] =
        kernels::kNf4Values[code] * absmax[static_cast<size_t>(i / tensor.nf4_block - first)];
  }
}

}  // namespace loongforge::formats
