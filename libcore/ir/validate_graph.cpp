#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/op_schema.h"
#include "ir/validate.h"

namespace loongforge::ir {
namespace {

using TensorIndex = std::unordered_map<std::string_view, const TensorEntry*>;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

class NodeCheck {
 public:
  NodeCheck(const Node& node, const TensorIndex& tensors, const std::string& where)
      : node_(node), tensors_(tensors), where_(where) {}

  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    throw_bad_data(where_, "node \"" + node_.name + "\" " + message, hint);
  }

  const OpSchema& schema() const {
    const OpSchema* schema = find_op_schema(node_.op);
    if (schema == nullptr) {
      std::string known;
      for (const OpSchema& each : op_schemas())
        known += (known.empty() ? "" : ", ") + std::string(each.op);
      fail("has the unknown op \"" + node_.op + "\"", "known ops: " + known);
    }
    return *schema;
  }

  void check_inputs(const OpSchema& schema,
                    const std::unordered_set<std::string_view>& earlier) const {
    if (static_cast<int>(node_.inputs.size()) != schema.inputs) {
      fail("of op " + node_.op + " has " + std::to_string(node_.inputs.size()) + " inputs, not " +
           std::to_string(schema.inputs));
    }
    for (const std::string& input : node_.inputs) {
      if ((input == "token_ids") != schema.takes_token_ids) {
        fail("of op " + node_.op +
             (schema.takes_token_ids ? " must read token_ids, not \"" + input + "\""
                                     : " cannot read token_ids"));
      }
      if (input != "token_ids" && !earlier.contains(input))
        fail("reads \"" + input + "\", which no earlier node gives");
    }
  }

  void check_params(const OpSchema& schema) const {
    for (const auto& [role, name] : node_.params) {
      const ParamSchema* known = nullptr;
      for (const ParamSchema& each : schema.params) known = each.role == role ? &each : known;
      if (known == nullptr) fail("of op " + node_.op + " takes no parameter \"" + role + "\"");
      const auto found = tensors_.find(name);
      if (found == tensors_.end())
        fail("names the tensor \"" + name + "\", which the table does not hold");
      if (static_cast<int>(found->second->shape.size()) != known->rank) {
        fail("needs \"" + name + "\" of rank " + std::to_string(known->rank) + ", not " +
             shape_text(found->second->shape));
      }
    }
    for (const ParamSchema& each : schema.params) {
      if (each.required && !node_.params.contains(std::string(each.role))) {
        fail("lacks the parameter \"" + std::string(each.role) + "\"");
      }
    }
  }

  void check_attrs(const OpSchema& schema) const {
    for (const AttrSchema& each : schema.attrs) {
      const support::Json* value = node_.attrs.find(each.name);
      if (value == nullptr) {
        if (each.required) fail("lacks the attribute \"" + std::string(each.name) + "\"");
        continue;
      }
      const bool good = each.type == AttrType::kInt      ? value->is_int() && value->as_int() >= 0
                        : each.type == AttrType::kNumber ? value->is_number()
                                                         : value->is_object();
      if (!good)
        fail("has the attribute \"" + std::string(each.name) + "\" = " + value->dump() +
             ", of a wrong type or sign");
    }
    for (const auto& [name, value] : node_.attrs.as_object()) {
      bool known = false;
      for (const AttrSchema& each : schema.attrs) known = known || each.name == name;
      if (!known) fail("of op " + node_.op + " takes no attribute \"" + name + "\"");
    }
  }

  // Sizes that the node states must be those of its tensors: whoever allocates by one may index by
  // the other.
  void check_shapes() const {
    if (node_.op != "linear") return;
    const int64_t in = node_.attrs.get_int("in", 0), out = node_.attrs.get_int("out", 0);
    const std::vector<int64_t>& weight = tensors_.at(node_.params.at("weight"))->shape;
    if (weight[0] != out || weight[1] != in) {
      fail("has a weight of shape " + shape_text(weight) + ", not [" + std::to_string(out) + ", " +
           std::to_string(in) + "]");
    }
    const auto bias = node_.params.find("bias");
    if (bias != node_.params.end() && tensors_.at(bias->second)->shape[0] != out) {
      fail("has a bias of shape " + shape_text(tensors_.at(bias->second)->shape) + ", not [" +
           std::to_string(out) + "]");
    }
  }

 private:
  const Node& node_;
  const TensorIndex& tensors_;
  const std::string& where_;
};

}  // namespace

void validate_graph(const Model& model, const std::string& where) {
  TensorIndex tensors;
  for (const TensorEntry& entry : model.tensors) tensors.emplace(entry.name, &entry);
  if (model.graph.nodes.empty()) throw_bad_data(where, "the graph has no nodes");
  std::unordered_set<std::string_view> earlier;
  for (const Node& node : model.graph.nodes) {
    const NodeCheck check(node, tensors, where);
    if (node.name.empty() || node.name == "token_ids") check.fail("has a name that is not allowed");
    if (earlier.contains(node.name)) check.fail("stands in the graph twice");
    const OpSchema& schema = check.schema();
    check.check_inputs(schema, earlier);
    check.check_params(schema);
    check.check_attrs(schema);
    check.check_shapes();
    if (node.shard != "fsdp_shard" && node.shard != "ddp_replicate" && node.shard != "io_shard" &&
        !node.shard.empty()) {
      check.fail("has the unknown shard strategy \"" + node.shard + "\"");
    }
    earlier.insert(node.name);
  }
}

}  // namespace loongforge::ir
