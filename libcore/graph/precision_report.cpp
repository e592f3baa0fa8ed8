#include "graph/precision_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/parameter_loader.h"
#include "graph/weight_codes.h"

namespace loongforge::graph {
namespace {

using kernels::Elem;
using quant::Activations;

std::string elem_text(Elem elem) {
  switch (elem) {
    case Elem::kE4M3:
      return "e4m3";
    case Elem::kE5M2:
      return "e5m2";
    case Elem::kNf4:
      return "nf4";
    case Elem::kBf16:
      return "bf16";
    case Elem::kF32:
      break;
  }
  return "fp32";
}

std::string shape_text(const ir::TensorEntry& entry) {
  std::string text;
  for (int64_t n : entry.shape) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

class Rows {
 public:
  Rows(const Parameters& params, const ir::Model& model)
      : params_(params), model_(model), recipe_(params.options().recipe) {}

  std::vector<PrecisionRow> make() {
    for (const ir::Node& node : model_.graph.nodes) {
      for (const auto& [key, name] : node.params) {
        if (!seen_.insert(model_.stored_tensor(name).name).second) continue;
        if (params_.weights().contains(model_.stored_tensor(name).name))
          add_weight(node, name);
        else
          add_vector(node, key, name);
      }
    }
    for (const auto& [path, adapter] : params_.adapters()) {
      const std::string of = " of rank " + std::to_string(adapter.rank);
      rows_.push_back({path + ".lora", "adapter",
                       std::to_string(adapter.k) + " -> " + std::to_string(adapter.n), "-", "fp32",
                       elem_text(recipe_.edge_elem()), elem_text(recipe_.edge_elem()),
                       "adapters are trained in fp32, their operands rounded once;" + of});
    }
    return std::move(rows_);
  }

 private:
  void add_weight(const ir::Node& node, const std::string& name) {
    const Weight& w = params_.weight(name);
    const ir::TensorEntry& entry = model_.stored_tensor(name);
    PrecisionRow row{w.name,
                     std::string(quant::role_name(w.role)),
                     shape_text(entry),
                     std::string(tensor::dtype_name(entry.dtype)),
                     elem_text(w.packed.elem),
                     "",
                     "",
                     w.reason};
    if (w.packed.elem == Elem::kNf4) row.weight += " 1x64";
    if (is_fp8(w.packed.elem)) row.weight += by_blocks(w, entry) ? " 128x128" : " tensor";
    if (node.op == "linear") layer(w, &row);
    rows_.push_back(std::move(row));
  }

  // The file's own codes keep their blocks, whatever the recipe of what is rounded here.
  bool by_blocks(const Weight& w, const ir::TensorEntry& entry) const {
    const bool as_stored = entry.dtype == tensor::DType::kE4M3LA && w.trainable < 0;
    return as_stored || recipe_.scales == quant::ScaleRecipe::kBlock;
  }

  void layer(const Weight& w, PrecisionRow* row) const {
    const std::string operand = w.precision == kernels::Precision::kF32 ? "fp32" : "bf16";
    const std::string scale = recipe_.scales == quant::ScaleRecipe::kBlock ? " 1x128" : " tensor";
    const Activations activations = w.fp8_layer ? recipe_.activations : Activations::kOff;
    row->inputs = row->gradients = operand;
    if (activations == Activations::kSaved && params_.trainable_floats() > 0)
      row->inputs += ", saved as " + elem_text(recipe_.input_elem()) + scale;
    if (activations != Activations::kCompute) return;
    row->inputs = elem_text(recipe_.input_elem()) + scale;
    row->gradients = elem_text(recipe_.gradient_elem()) + scale;
  }

  void add_vector(const ir::Node& node, const std::string& key, const std::string& name) {
    const ir::TensorEntry& entry = model_.stored_tensor(name);
    const bool bias = key == "bias" && node.op == "linear";
    rows_.push_back({entry.name, bias ? "bias" : "norm", shape_text(entry),
                     std::string(tensor::dtype_name(entry.dtype)), "fp32", "", "",
                     bias ? "biases stay in high precision" : "norms stay in high precision"});
  }

  const Parameters& params_;
  const ir::Model& model_;
  const quant::Recipe& recipe_;
  std::set<std::string> seen_;
  std::vector<PrecisionRow> rows_;
};

}  // namespace

std::vector<PrecisionRow> precision_rows(const Parameters& params, const ir::Model& model) {
  return Rows(params, model).make();
}

namespace {

// "model.layers.3.mlp.down_proj.weight" -> "model.layers." 3 ".mlp.down_proj.weight"; no number:
// all of it before.
struct LayerName {
  std::string before, after;
  int64_t layer = -1;
};

LayerName split_name(const std::string& name) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const size_t end = name.find('.', dot + 1);
    if (end == std::string::npos || end == dot + 1 || end - dot > 10) continue;
    const std::string word = name.substr(dot + 1, end - dot - 1);
    if (std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return {name.substr(0, dot + 1), name.substr(end), std::stoll(word)};
  }
  return {name, {}, -1};
}

// "0-3,5"
std::string ranges(const std::vector<int64_t>& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(layers[i]) +
            (last > i ? "-" + std::to_string(layers[last]) : "");
    i = last + 1;
  }
  return text;
}

}  // namespace

std::string precision_table(const std::vector<PrecisionRow>& rows) {
  struct Entry {
    LayerName name;
    const PrecisionRow* row;
    std::vector<int64_t> layers;
  };
  std::vector<Entry> entries;
  std::map<std::string, size_t> known;
  for (const PrecisionRow& r : rows) {
    const LayerName name = split_name(r.tensor);
    std::string key = name.layer < 0 ? r.tensor : name.before + "#" + name.after;
    for (const std::string* part :
         {&r.role, &r.shape, &r.stored, &r.weight, &r.inputs, &r.gradients, &r.reason})
      key += "\n" + *part;
    const auto [at, fresh] = known.emplace(key, entries.size());
    if (fresh) entries.push_back({name, &r, {}});
    if (name.layer >= 0) entries[at->second].layers.push_back(name.layer);
  }
  std::string text;
  for (const Entry& e : entries) {
    const PrecisionRow& r = *e.row;
    text += e.name.before + (e.layers.empty() ? "" : ranges(e.layers) + e.name.after) + "\n";
    text += "    " + r.role + " " + r.shape +
            (r.stored == "-" ? "" : ", " + r.stored + " in the file") + ", runs as " + r.weight +
            "\n";
    if (!r.inputs.empty()) text += "    inputs " + r.inputs + "; gradients " + r.gradients + "\n";
    text += "    " + r.reason + "\n";
  }
  return text;
}

}  // namespace loongforge::graph
