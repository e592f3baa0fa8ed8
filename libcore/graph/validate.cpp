#include "graph/validate.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/ops/rope_table.h"

namespace loongforge::graph {
namespace {

support::Json rope_scaling(const ir::Node& node) {
  const support::Json* scaling = node.attrs.find("scaling");
  return scaling == nullptr ? support::Json() : *scaling;
}

class Validator {
 public:
  Validator(const ir::Model& model, const std::string& where) : model_(model), where_(where) {}

  int64_t run() {
    const auto& nodes = model_.graph.nodes;
    if (nodes.empty()) throw_bad_data(where_, "the graph has no nodes");
    for (const ir::Node& node : nodes) cols_[node.name] = shape(node);
    if (nodes.back().op != "linear")
      fail(nodes.back(), "the last node must be the output layer (linear)");
    for (const ir::Node& node : nodes)
      if (node.op == "embedding" && &node != &nodes.front())
        fail(node, "an embedding must be the first node");
    return cols_[nodes.back().name];
  }

 private:
  [[noreturn]] void fail(const ir::Node& node, const std::string& what) const {
    throw_bad_data(where_ + ": node " + node.name, what);
  }

  int64_t input(const ir::Node& node, size_t index) const {
    if (index >= node.inputs.size())
      fail(node, node.op + " lacks input " + std::to_string(index + 1));
    auto it = cols_.find(node.inputs[index]);
    if (it == cols_.end()) fail(node, "input " + node.inputs[index] + " is no earlier node");
    return it->second;
  }
  void arity(const ir::Node& node, size_t n) const {
    if (node.inputs.size() != n)
      fail(node, node.op + " takes " + std::to_string(n) + " inputs, not " +
                     std::to_string(node.inputs.size()));
  }
  const ir::TensorEntry& param(const ir::Node& node, const char* role, size_t rank) const {
    auto it = node.params.find(role);
    if (it == node.params.end()) fail(node, std::string("lacks parameter ") + role);
    const ir::TensorEntry& t = model_.stored_tensor(it->second);
    if (t.shape.size() != rank) fail(node, t.name + " has rank " + std::to_string(t.shape.size()));
    return t;
  }
  void expect(const ir::Node& node, const std::string& what, int64_t got, int64_t want) const {
    if (got != want)
      fail(node, what + " is " + std::to_string(got) + ", expected " + std::to_string(want));
  }
  int64_t attr(const ir::Node& node, const char* key) const {
    const int64_t value = node.attrs.at(key, node.name).as_int(key);
    if (value <= 0 || value > (int64_t{1} << 24)) fail(node, std::string(key) + " is out of range");
    return value;
  }

  int64_t shape(const ir::Node& node) const {
    if (node.op == "embedding") {
      arity(node, 1);
      if (node.inputs[0] != "token_ids") fail(node, "an embedding reads token_ids");
      return param(node, "weight", 2).shape[1];
    }
    if (node.op == "rms_norm") {
      arity(node, 1);
      const int64_t cols = input(node, 0), group = node.attrs.get_int("group", cols);
      if (group <= 0 || cols % group != 0) fail(node, "group does not divide the row");
      expect(node, "weight length", param(node, "weight", 1).shape[0], group);
      if (!(node.attrs.at("eps", node.name).as_double("eps") > 0))
        fail(node, "eps must be positive");
      return cols;
    }
    if (node.op == "linear") {
      arity(node, 1);
      const ir::TensorEntry& w = param(node, "weight", 2);
      expect(node, "weight columns", w.shape[1], input(node, 0));
      if (node.params.contains("bias"))
        expect(node, "bias length", param(node, "bias", 1).shape[0], w.shape[0]);
      return w.shape[0];
    }
    if (node.op == "rope") {
      arity(node, 1);
      const int64_t cols = input(node, 0), dim = attr(node, "head_dim");
      expect(node, "heads x head_dim", attr(node, "heads") * dim, cols);
      if (dim % 2 != 0) fail(node, "head_dim must be even");
      expect(node, "rotary_dim", node.attrs.get_int("rotary_dim", dim), dim);
      rope_frequencies(dim, node.attrs.at("theta", node.name).as_double("theta"),
                       rope_scaling(node), 1, where_ + ": node " + node.name);
      return cols;
    }
    if (node.op == "attention") return attention(node);
    if (node.op == "swiglu" || node.op == "add") {
      arity(node, 2);
      expect(node, "second input's columns", input(node, 1), input(node, 0));
      return input(node, 0);
    }
    fail(node, "op " + node.op + " is not known");
  }

  int64_t attention(const ir::Node& node) const {
    arity(node, 3);
    const int64_t heads = attr(node, "heads"), kv = attr(node, "kv_heads"),
                  dim = attr(node, "head_dim");
    if (heads % kv != 0) fail(node, "heads is no multiple of kv_heads");
    if (node.attrs.get_int("window", 0) < 0) fail(node, "window is negative");
    if (dim % 8 != 0 || dim > 256) fail(node, "head_dim must be a multiple of 8 up to 256");
    expect(node, "query columns", input(node, 0), heads * dim);
    expect(node, "key columns", input(node, 1), kv * dim);
    expect(node, "value columns", input(node, 2), kv * dim);
    return heads * dim;
  }

  const ir::Model& model_;
  const std::string& where_;
  std::map<std::string, int64_t> cols_;
};

}  // namespace

int64_t validate(const ir::Model& model, const std::string& where) {
  return Validator(model, where).run();
}

bool depends_on_longest_document(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
    return node.op == "rope" && rope_depends_on_length(rope_scaling(node));
  });
}

}  // namespace loongforge::graph
