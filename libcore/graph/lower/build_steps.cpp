// Makes an op and its values of every lowered node: element types by the precision recipe, shapes
// by the ops themselves.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/lower/lowered.h"
#include "graph/ops/ops.h"
#include "graph/parameter_loader.h"

namespace loongforge::graph {
namespace {

using kernels::Elem;

class Builder {
 public:
  Builder(const LoweredGraph& graph, Parameters& params, const PlanOptions& options)
      : graph_(graph), params_(params), options_(options), elem_(options.recipe.edge_elem()) {}

  StepList run() {
    for (const LoweredNode& node : graph_) {
      Step step;
      for (const std::string& input : node.inputs)
        if (input != "token_ids") step.in.push_back(value(input));
      step.op = make(node, step);
      const std::vector<OutputSpec> specs = step.op->outputs();
      for (size_t o = 0; o < specs.size(); ++o) {
        step.out.push_back(static_cast<int>(list_.values.size()));
        by_name_[node.outputs[o]] = step.out.back();
        list_.values.push_back({node.outputs[o], specs[o].cols, specs[o].elem, is_edge(node),
                                static_cast<int>(list_.steps.size())});
      }
      list_.steps.push_back(std::move(step));
    }
    return std::move(list_);
  }

 private:
  int value(const std::string& name) const { return by_name_.at(name); }
  int64_t cols(int v) const { return list_.values[static_cast<size_t>(v)].cols; }

  // A value whose readers all stand outside its block is what passes from block to block.
  bool is_edge(const LoweredNode& node) const {
    if (node.block < 0) return true;
    bool outside = false;
    for (const LoweredNode& reader : graph_) {
      const bool reads =
          std::find_first_of(reader.inputs.begin(), reader.inputs.end(), node.outputs.begin(),
                             node.outputs.end()) != reader.inputs.end();
      if (reads && reader.block == node.block) return false;
      outside |= reads;
    }
    return outside;
  }

  std::unique_ptr<Op> make(const LoweredNode& node, const Step& step) {
    const ir::Node& first = *node.sources.front();
    if (node.op == "embedding") {
      const Weight& w = params_.weight(first.params.at("weight"));
      const Weight& head = params_.weight(graph_.back().sources.front()->params.at("weight"));
      return make_embedding(node.name, w.name, w.packed.k, elem_, w.trainable, &head == &w);
    }
    if (node.op == "rms_norm") return norm(node, step);
    if (node.op == "linear") return linear(node);
    if (node.op == "rope") return rope(node);
    if (node.op == "attention") return attention(node);
    if (node.op == "swiglu") return make_swiglu(node.name, node.block, cols(step.in[0]), elem_);
    if (node.op == "add")
      return make_add(node.name, node.block, cols(step.in[0]), is_edge(node) ? elem_ : Elem::kF32);
    if (node.op == "head") {
      const Weight& w = params_.weight(first.params.at("weight"));
      return make_head(node.name, {w.name, w.packed.k, w.packed.n, w.trainable,
                                   options_.mode != PlanMode::kGenerate,
                                   options_.mode == PlanMode::kTrain, elem_, w.precision});
    }
    throw_bad_data(node.name, "op " + node.op + " is not known");
  }

  std::unique_ptr<Op> norm(const LoweredNode& node, const Step& step) {
    const ir::Node& n = *node.sources.front();
    RmsNormSpec spec;
    spec.weight = n.params.at("weight");
    spec.cols = cols(step.in[0]);
    spec.group = n.attrs.get_int("group", spec.cols);
    spec.eps = static_cast<float>(n.attrs.at("eps", n.name).as_double("eps"));
    spec.elem = elem_;
    spec.trainable = params_.vector_trainable(spec.weight);
    return make_rms_norm(node.name, node.block, spec);
  }

  std::unique_ptr<Op> linear(const LoweredNode& node) {
    LinearSpec spec;
    const quant::Recipe& recipe = options_.recipe;
    spec.elem = elem_;
    const Weight& first = params_.weight(node.sources.front()->params.at("weight"));
    spec.activations = first.fp8_layer ? recipe.activations : quant::Activations::kOff;
    spec.precision = first.precision;
    spec.input = {module_path(first.name) + ".input",
                  recipe.input_elem(),
                  recipe.scales,
                  0.0f,
                  false,
                  first.packed.k};
    for (size_t s = 0; s < node.sources.size(); ++s) {
      const ir::Node& source = *node.sources[s];
      const Weight& w = params_.weight(source.params.at("weight"));
      LinearSegment seg;
      seg.weight = w.name;
      seg.n = w.packed.n;
      seg.trainable = w.trainable;
      if (auto bias = source.params.find("bias"); bias != source.params.end()) {
        seg.bias = bias->second;
        seg.bias_trainable = params_.vector_trainable(seg.bias);
      }
      if (s < node.adapters.size()) seg.path = node.adapters[s];
      if (const Adapter* a = seg.path.empty() ? nullptr : params_.adapter(seg.path); a != nullptr) {
        spec.total_rank += a->rank;
        if (options_.mode == PlanMode::kTrain) spec.dropout = a->dropout;
      }
      spec.k = w.packed.k;
      const std::string path = module_path(w.name);
      seg.gradient = {path + ".grad", recipe.gradient_elem(),
                      recipe.scales,  recipe.factor_of(path + ".grad"),
                      true,           seg.n};
      // One X for all segments: the largest factor that one of them asks for.
      spec.input.factor = std::max(spec.input.factor, recipe.factor_of(path + ".input"));
      spec.segments.push_back(std::move(seg));
    }
    return make_linear(node.name, node.block, spec);
  }

  std::unique_ptr<Op> rope(const LoweredNode& node) {
    RopeSpec spec;
    spec.elem = elem_;
    const support::Json& attrs = node.sources.front()->attrs;
    spec.head_dim = attrs.at("head_dim", node.name).as_int("head_dim");
    for (const ir::Node* source : node.sources)
      spec.heads.push_back(source->attrs.at("heads", source->name).as_int("heads"));
    const std::string key = attrs.dump();
    if (rope_tables_ == nullptr || key != rope_key_) {
      const support::Json* scaling = attrs.find("scaling");
      rope_tables_ = std::make_shared<const RopeTables>(
          spec.head_dim, options_.max_positions, attrs.at("theta", node.name).as_double("theta"),
          scaling == nullptr ? support::Json() : *scaling, node.name);
      rope_key_ = key;
    }
    spec.tables = rope_tables_;
    return make_rope(node.name, node.block, spec);
  }

  std::unique_ptr<Op> attention(const LoweredNode& node) {
    const support::Json& a = node.sources.front()->attrs;
    AttentionSpec spec;
    spec.heads = a.at("heads", node.name).as_int("heads");
    spec.kv_heads = a.at("kv_heads", node.name).as_int("kv_heads");
    spec.head_dim = a.at("head_dim", node.name).as_int("head_dim");
    spec.window = a.get_int("window", 0);
    spec.scale = static_cast<float>(a.at("scale", node.name).as_double("scale"));
    spec.elem = elem_;
    return make_attention(node.name, node.block, spec);
  }

  const LoweredGraph& graph_;
  Parameters& params_;
  const PlanOptions& options_;
  Elem elem_;
  StepList list_;
  std::map<std::string, int> by_name_;
  std::shared_ptr<const RopeTables> rope_tables_;
  std::string rope_key_;
};

}  // namespace

StepList build_steps(const LoweredGraph& graph, Parameters& params, const PlanOptions& options) {
  return Builder(graph, params, options).run();
}

Plan make_plan(const ir::Model& model, Parameters& params, const PlanOptions& options) {
  LoweredGraph graph = from_file_graph(model.graph);
  fuse_head(&graph);
  if (options.join_linears) join_linears(&graph, params);
  join_ropes(&graph);
  insert_lora(&graph, params);
  Plan plan;
  plan.options = options;
  plan.list = build_steps(graph, params, options);
  for (const Step& step : plan.list.steps)
    plan.forward_flops_per_token += step.op->forward_flops_per_token();
  schedule(&plan);
  return plan;
}

}  // namespace loongforge::graph
