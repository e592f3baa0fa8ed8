#include "models/builder.h"

#include <map>
#include <unordered_map>

#include "base/error.h"
#include "support/counted.h"

namespace loongforge::models {
namespace {

// The static rule: a block (or a node outside of blocks) with more bytes of bf16 parameters than
// this is sharded.
constexpr int64_t kShardBytes = 50'000'000;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

GraphBuilder::GraphBuilder(const formats::HfConfig& config, const formats::TensorSource& source,
                           std::function<std::string(const std::string&)> source_name)
    : config_(config), source_(source), source_name_(std::move(source_name)) {}

ir::Node& GraphBuilder::node(const std::string& name, std::string op,
                             std::vector<std::string> inputs) {
  ir::Node& added = plan_.graph.nodes.emplace_back();
  added.name = name;
  added.op = std::move(op);
  added.inputs = std::move(inputs);
  added.block = block_;
  return added;
}

void GraphBuilder::tensor(const std::string& name, std::vector<int64_t> shape,
                          int64_t interleaved_heads) {
  const std::string source_name = source_name_(name);
  const formats::StoredTensor* stored = source_.find(source_name);
  if (stored == nullptr) {
    throw_bad_data(source_.path().string() + ": " + source_name,
                   "the tensor is absent, " + config_.where + " asks for it",
                   "is the download complete, and the configuration this model's?");
  }
  if (stored->shape != shape) {
    throw_bad_data(stored->where(), "has the shape " + shape_text(stored->shape) + ", " +
                                        config_.where + " asks for " + shape_text(shape));
  }
  used_.insert(source_name);
  plan_.tensors.push_back({name, stored, std::move(shape), interleaved_heads});
}

std::string GraphBuilder::embedding(const std::string& name, const std::string& weight,
                                    int64_t rows, int64_t cols) {
  tensor(weight, {rows, cols});
  node(name, "embedding", {"token_ids"}).params["weight"] = weight;
  return name;
}

std::string GraphBuilder::rms_norm(const std::string& name, const std::string& input,
                                   const std::string& weight, int64_t size, double eps,
                                   int64_t group) {
  tensor(weight, {size});
  ir::Node& added = node(name, "rms_norm", {input});
  added.params["weight"] = weight;
  added.attrs.set("eps", eps);
  if (group > 0) added.attrs.set("group", group);
  return name;
}

std::string GraphBuilder::linear(const std::string& name, const std::string& input,
                                 const std::string& module, int64_t in, int64_t out, bool bias,
                                 int64_t interleaved_heads) {
  tensor(module + ".weight", {out, in}, interleaved_heads);
  if (bias) tensor(module + ".bias", {out}, interleaved_heads);
  ir::Node& added = node(name, "linear", {input});
  added.params["weight"] = module + ".weight";
  if (bias) added.params["bias"] = module + ".bias";
  added.attrs.set("in", in);
  added.attrs.set("out", out);
  return name;
}

std::string GraphBuilder::tied_linear(const std::string& name, const std::string& input,
                                      const std::string& weight, int64_t in, int64_t out) {
  ir::Node& added = node(name, "linear", {input});
  added.params["weight"] = weight;
  added.attrs.set("in", in);
  added.attrs.set("out", out);
  return name;
}

std::string GraphBuilder::rope(const std::string& name, const std::string& input, int64_t heads) {
  ir::Node& added = node(name, "rope", {input});
  added.attrs.set("heads", heads);
  added.attrs.set("head_dim", config_.head_dim);
  added.attrs.set("theta", config_.rope.theta);
  added.attrs.set("rotary_dim", config_.rotary_dim());
  if (config_.rope.type != "default") {
    support::Json scaling = config_.rope.to_json();
    scaling.erase("rope_theta");
    scaling.erase("partial_rotary_factor");
    if (config_.rope.type == "dynamic")
      scaling.set("max_position_embeddings", config_.max_position_embeddings);
    added.attrs.set("scaling", std::move(scaling));
  }
  return name;
}

std::string GraphBuilder::attention(const std::string& name, const std::string& q,
                                    const std::string& k, const std::string& v, double scale,
                                    int64_t window) {
  ir::Node& added = node(name, "attention", {q, k, v});
  added.attrs.set("heads", config_.num_attention_heads);
  added.attrs.set("kv_heads", config_.num_key_value_heads);
  added.attrs.set("head_dim", config_.head_dim);
  added.attrs.set("scale", scale);
  added.attrs.set("window", window);
  return name;
}

std::string GraphBuilder::swiglu(const std::string& name, const std::string& gate,
                                 const std::string& up) {
  node(name, "swiglu", {gate, up});
  return name;
}

std::string GraphBuilder::add(const std::string& name, const std::string& a, const std::string& b) {
  node(name, "add", {a, b});
  return name;
}

void GraphBuilder::alias(const std::string& name, const std::string& alias_of) {
  const std::string source_name = source_name_(name);
  const formats::StoredTensor* stored = source_.find(source_name);
  if (stored != nullptr) {
    used_.insert(source_name);
    for (const PlannedTensor& planned : plan_.tensors) {
      if (planned.name == alias_of && planned.shape != stored->shape) {
        throw_bad_data(stored->where(), "has the shape " + shape_text(stored->shape) +
                                            ", but is tied to " + alias_of + " of " +
                                            shape_text(planned.shape));
      }
    }
  }
  plan_.aliases.push_back({name, alias_of, stored});
}

ModelPlan GraphBuilder::finish() {
  assign_shards();
  account_for_the_rest();
  return std::move(plan_);
}

void GraphBuilder::assign_shards() {
  std::unordered_map<std::string_view, int64_t> bytes;
  for (const PlannedTensor& planned : plan_.tensors) {
    int64_t elements = 1;
    for (int64_t extent : planned.shape) elements *= extent;
    bytes[planned.name] = elements * 2;
  }
  const auto bytes_of = [&bytes](const ir::Node& each) {
    int64_t sum = 0;
    for (const auto& [role, name] : each.params) {
      const auto found = bytes.find(name);
      if (found != bytes.end()) sum += found->second;
    }
    return sum;
  };
  std::map<int, int64_t> blocks;
  for (const ir::Node& each : plan_.graph.nodes) {
    if (each.block >= 0) blocks[each.block] += bytes_of(each);
  }
  for (size_t i = 0; i < plan_.graph.nodes.size(); ++i) {
    ir::Node& each = plan_.graph.nodes[i];
    const bool head = i + 1 == plan_.graph.nodes.size();
    const int64_t unit = each.block >= 0 ? blocks[each.block] : bytes_of(each);
    if (each.op == "embedding") {
      each.shard = "io_shard";
    } else {
      each.shard = unit > kShardBytes && !head ? "fsdp_shard" : "ddp_replicate";
    }
  }
}

void GraphBuilder::account_for_the_rest() {
  std::string first;
  int64_t unused = 0;
  for (const formats::StoredTensor& stored : source_.tensors()) {
    if (used_.contains(stored.name)) continue;
    if (ignorable_ && ignorable_(stored.name)) {
      plan_.ignored.push_back(stored.name);
      continue;
    }
    if (unused++ == 0) first = stored.name;
  }
  if (unused > 0) {
    plan_.warnings.push_back(source_.path().string() + ": " + support::counted(unused, "tensor") +
                             (unused == 1 ? " is" : " are") + " not part of the model that " +
                             config_.where + " describes and left out, the first: " + first);
  }
}

}  // namespace loongforge::models
