#include "ir/model_json.h"

#include <charconv>
#include <initializer_list>
#include <limits>

#include "base/error.h"
#include "ir/layout.h"

namespace loongforge::ir {
namespace {

using support::Json;

// ---- writing ----

Json node_to_json(const Node& node) {
  Json object = Json::object();
  object.set("name", node.name);
  object.set("op", node.op);
  Json inputs = Json::array();
  for (const std::string& input : node.inputs) inputs.push_back(input);
  object.set("inputs", std::move(inputs));
  if (!node.params.empty()) {
    Json params = Json::object();
    for (const auto& [role, name] : node.params) params.set(role, name);
    object.set("params", std::move(params));
  }
  if (!node.attrs.as_object().empty()) object.set("attrs", node.attrs);
  if (!node.shard.empty()) object.set("shard", node.shard);
  if (node.block >= 0) object.set("block", node.block);
  return object;
}

Json numbers(const std::vector<int64_t>& values) {
  return Json(Json::Array(values.begin(), values.end()));
}

Json tensor_to_json(const TensorEntry& entry) {
  Json object = Json::object();
  object.set("name", entry.name);
  object.set("dtype", tensor::dtype_name(entry.dtype));
  object.set("shape", numbers(entry.shape));
  if (!entry.alias_of.empty()) {
    object.set("alias_of", entry.alias_of);
    object.set("source_had_both", entry.source_had_both);
    return object;
  }
  object.set("file", entry.file);
  object.set("offset", entry.offset);
  object.set("bytes", entry.bytes);
  if (!entry.scale.empty()) {
    Json block = Json::array();
    block.push_back(entry.block_rows);
    block.push_back(entry.block_cols);
    object.set("scale_block", std::move(block));
    object.set("scale", entry.scale);
  }
  if (!entry.source_scale.name.empty()) {
    Json source = Json::object();
    source.set("name", entry.source_scale.name);
    source.set("shape", numbers(entry.source_scale.shape));
    object.set("source_scale", std::move(source));
  }
  if (!entry.companions.empty()) {
    object.set("companions", Json(Json::Array(entry.companions.begin(), entry.companions.end())));
  }
  if (entry.crc.empty()) {
    object.set("crc32c", int64_t{entry.crc32c});
  } else {
    object.set("crc", entry.crc);
  }
  return object;
}

void append_lines(std::string* text, const Json::Array& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    *text += "    " + items[i].dump() + (i + 1 < items.size() ? ",\n" : "\n");
  }
}

// ---- reading ----

// A JSON object of which every key must be known, unless the file's minor version is newer than
// ours.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::string what, bool tolerant)
      : object_(&json), where_(std::move(where)), what_(std::move(what)), tolerant_(tolerant) {
    if (!json.is_object()) fail(std::string("is ") + json.type_name() + ", not an object");
  }

  void allow(std::initializer_list<std::string_view> known) const {
    if (tolerant_) return;
    for (const auto& [key, value] : object_->as_object()) {
      bool found = false;
      for (std::string_view name : known) found = found || key == name;
      if (!found) fail("has the unknown key \"" + key + "\"");
    }
  }

  const Json& need(std::string_view key) const {
    const Json* value = object_->find(key);
    if (value == nullptr) fail("lacks the key \"" + std::string(key) + "\"");
    return *value;
  }
  const Json* get(std::string_view key) const { return object_->find(key); }

  std::string text(std::string_view key) const {
    const Json& value = need(key);
    if (!value.is_string()) fail_type(key, value, "a string");
    return value.as_string();
  }
  std::string text_or_empty(std::string_view key) const {
    return get(key) == nullptr ? std::string() : text(key);
  }

  int64_t integer(std::string_view key, int64_t low, int64_t high) const {
    const Json& value = need(key);
    if (!value.is_int()) fail_type(key, value, "an integer");
    return in_range(key, value.as_int(), low, high);
  }

  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high) const {
    const Json& value = need(key);
    if (!value.is_array()) fail_type(key, value, "an array");
    std::vector<int64_t> out;
    for (const Json& item : value.as_array()) {
      if (!item.is_int()) fail_type(key, item, "an array of integers");
      out.push_back(in_range(key, item.as_int(), low, high));
    }
    return out;
  }

  const Json& object(std::string_view key) const {
    const Json& value = need(key);
    if (!value.is_object()) fail_type(key, value, "an object");
    return value;
  }
  const Json::Array& array(std::string_view key) const {
    const Json& value = need(key);
    if (!value.is_array()) fail_type(key, value, "an array");
    return value.as_array();
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw_bad_data(where_, what_ + " " + message);
  }
  [[noreturn]] void fail_type(std::string_view key, const Json& value,
                              std::string_view expected) const {
    fail("has the key \"" + std::string(key) + "\" as " + value.type_name() + ", not " +
         std::string(expected));
  }

 private:
  int64_t in_range(std::string_view key, int64_t value, int64_t low, int64_t high) const {
    if (value < low || value > high) {
      fail("has the key \"" + std::string(key) + "\" out of range: " + std::to_string(value));
    }
    return value;
  }

  const Json* object_;
  std::string where_, what_;
  bool tolerant_;
};

constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

// major.minor, both small numbers without sign.
void parse_version(const std::string& text, const std::string& where, Model* model) {
  const char* end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, model->version_major);
  bool good = error == std::errc() && dot != end && *dot == '.' && model->version_major >= 0;
  if (good) {
    auto [last, error2] = std::from_chars(dot + 1, end, model->version_minor);
    good = error2 == std::errc() && last == end && model->version_minor >= 0;
  }
  if (!good)
    throw_bad_data(where, "format_version \"" + text + "\" is not of the form major.minor");
  if (model->version_major != kVersionMajor) {
    throw_bad_data(where,
                   "format_version " + text + " is not one that this version reads (" +
                       std::to_string(kVersionMajor) + ".x)",
                   model->version_major > kVersionMajor ? "use a newer loongforge"
                                                        : "convert the model again");
  }
}

Node parse_node(const Json& json, const std::string& where, size_t index, bool tolerant) {
  const Fields fields(json, where, "graph node " + std::to_string(index), tolerant);
  fields.allow({"name", "op", "inputs", "params", "attrs", "shard", "block"});
  Node node;
  node.name = fields.text("name");
  const Fields named(json, where, "graph node \"" + node.name + "\"", tolerant);
  node.op = named.text("op");
  for (const Json& input : named.array("inputs")) {
    if (!input.is_string()) named.fail_type("inputs", input, "an array of strings");
    node.inputs.push_back(input.as_string());
  }
  if (named.get("params") != nullptr) {
    for (const auto& [role, name] : named.object("params").as_object()) {
      if (!name.is_string()) named.fail_type("params", name, "an object of strings");
      node.params[role] = name.as_string();
    }
  }
  if (named.get("attrs") != nullptr) node.attrs = named.object("attrs");
  node.shard = named.text_or_empty("shard");
  if (named.get("block") != nullptr)
    node.block = static_cast<int>(named.integer("block", 0, 1'000'000));
  return node;
}

TensorEntry parse_tensor(const Json& json, const std::string& where, size_t index, bool tolerant) {
  const Fields fields(json, where, "tensor " + std::to_string(index), tolerant);
  fields.allow({"name", "dtype", "shape", "file", "offset", "bytes", "scale_block", "scale",
                "source_scale", "companions", "crc", "crc32c", "alias_of", "source_had_both"});
  TensorEntry entry;
  entry.name = fields.text("name");
  const Fields named(json, where, "tensor \"" + entry.name + "\"", tolerant);
  const std::string dtype = named.text("dtype");
  const auto parsed = tensor::parse_dtype(dtype);
  if (!parsed) named.fail("has the unknown dtype \"" + dtype + "\"");
  entry.dtype = *parsed;
  entry.shape = named.integers("shape", 1, kMaxInt);
  if (named.get("alias_of") != nullptr) {
    entry.alias_of = named.text("alias_of");
    if (entry.alias_of.empty()) named.fail("has an empty alias_of");
    if (const Json* both = named.get("source_had_both")) {
      if (!both->is_bool()) named.fail_type("source_had_both", *both, "a boolean");
      entry.source_had_both = both->as_bool();
    }
    return entry;
  }
  entry.file = named.text("file");
  entry.offset = static_cast<uint64_t>(named.integer("offset", 0, kMaxInt));
  entry.bytes = static_cast<uint64_t>(named.integer("bytes", 0, kMaxInt));
  entry.scale = named.text_or_empty("scale");
  entry.crc = named.text_or_empty("crc");
  if (named.get("scale_block") != nullptr) {
    const std::vector<int64_t> block = named.integers("scale_block", 1, kMaxInt);
    if (block.size() != 2) named.fail("has a scale_block of other than two numbers");
    entry.block_rows = block[0];
    entry.block_cols = block[1];
  }
  if (named.get("source_scale") != nullptr) {
    const Fields source(named.object("source_scale"), where,
                        "the source_scale of tensor \"" + entry.name + "\"", tolerant);
    source.allow({"name", "shape"});
    entry.source_scale.name = source.text("name");
    if (entry.source_scale.name.empty()) source.fail("has an empty name");
    entry.source_scale.shape = source.integers("shape", 1, kMaxInt);
  }
  if (named.get("companions") != nullptr) {
    for (const Json& item : named.array("companions")) {
      if (!item.is_string()) named.fail_type("companions", item, "an array of strings");
      entry.companions.push_back(item.as_string());
    }
  }
  if (entry.crc.empty())
    entry.crc32c = static_cast<uint32_t>(named.integer("crc32c", 0, 0xFFFFFFFFll));
  return entry;
}

}  // namespace

std::string model_to_text(const Model& model) {
  const auto member = [](std::string_view key, const Json& value) {
    return "  " + Json(key).dump() + ": " + value.dump() + ",\n";
  };
  std::string text = "{\n";
  text += member("format", kFormatName);
  text += member("format_version",
                 std::to_string(model.version_major) + "." + std::to_string(model.version_minor));
  text += member("family", model.family);
  text += member("model_name", model.model_name);
  text += member("device", model.device);
  text += member("quantize", model.quantize);
  text += member("config", model.config);
  text += member("token_ids", model.token_ids);
  text += "  \"graph\": {\"nodes\": [\n";
  Json::Array items;
  for (const Node& node : model.graph.nodes) items.push_back(node_to_json(node));
  append_lines(&text, items);
  text += "  ]},\n  \"tensors\": [\n";
  items.clear();
  for (const TensorEntry& entry : model.tensors) items.push_back(tensor_to_json(entry));
  append_lines(&text, items);
  text += "  ]\n}\n";
  return text;
}

Model model_from_text(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, where);
  Model model;
  // The version comes first: what the rest means depends on it.
  const Fields head(json, where, "the model description", true);
  if (head.get("format") == nullptr || head.text("format") != kFormatName) {
    head.fail("is not of format \"" + std::string(kFormatName) + "\"");
  }
  parse_version(head.text("format_version"), where, &model);
  const bool tolerant = model.version_minor > kVersionMinor;

  const Fields fields(json, where, "the model description", tolerant);
  fields.allow({"format", "format_version", "family", "model_name", "device", "quantize", "config",
                "token_ids", "graph", "tensors"});
  model.family = fields.text("family");
  model.model_name = fields.text("model_name");
  model.device = fields.text("device");
  model.quantize = fields.text("quantize");
  model.config = fields.object("config");
  model.token_ids = fields.object("token_ids");
  const Fields graph(fields.object("graph"), where, "\"graph\"", tolerant);
  graph.allow({"nodes"});
  const Json::Array& nodes = graph.array("nodes");
  for (size_t i = 0; i < nodes.size(); ++i)
    model.graph.nodes.push_back(parse_node(nodes[i], where, i, tolerant));
  const Json::Array& tensors = fields.array("tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    model.tensors.push_back(parse_tensor(tensors[i], where, i, tolerant));
  return model;
}

}  // namespace loongforge::ir
