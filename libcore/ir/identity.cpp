#include "ir/identity.h"

#include <map>
#include <span>
#include <string>

#include "base/checksum.h"

namespace loongforge::ir {
namespace {

class Sum {
 public:
  // Each word with its end, so that "ab", "c" is not "a", "bc".
  void add(std::string_view word) {
    crc_ = crc32c({reinterpret_cast<const uint8_t*>(word.data()), word.size()}, crc_);
    const uint8_t end = 0;
    crc_ = crc32c({&end, 1}, crc_);
  }
  void add(int64_t number) { add(std::to_string(number)); }
  uint32_t value() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

void add_graph(const Model& model, Sum* sum) {
  sum->add(model.family);
  for (const Node& node : model.graph.nodes) {
    sum->add(node.name);
    sum->add(node.op);
    for (const std::string& input : node.inputs) sum->add(input);
    for (const auto& [role, tensor] : node.params) {
      sum->add(role);
      sum->add(tensor);
    }
    sum->add(node.attrs.dump(-1, true));
  }
}

void add_shape(const TensorEntry& entry, Sum* sum) {
  sum->add(entry.name);
  for (const int64_t size : entry.shape) sum->add(size);
}

}  // namespace

uint32_t identity_with_weights(const Model& model) {
  Sum sum;
  add_graph(model, &sum);
  for (const TensorEntry& entry : model.tensors) {
    add_shape(entry, &sum);
    sum.add(tensor::dtype_name(entry.dtype));
    sum.add(entry.block_rows);
    sum.add(entry.block_cols);
    sum.add(entry.alias_of);
    sum.add(entry.crc32c);  // a companion's; a weight's checksums are one
  }
  return sum.value();
}

uint32_t identity_of_shape(const Model& model) {
  Sum sum;
  add_graph(model, &sum);
  std::map<std::string, const TensorEntry*> by_name;
  for (const TensorEntry& entry : model.tensors) by_name[entry.name] = &entry;
  for (const Node& node : model.graph.nodes)
    for (const auto& [role, tensor] : node.params)
      if (const auto found = by_name.find(tensor); found != by_name.end()) {
        const std::string& alias = found->second->alias_of;
        add_shape(alias.empty() ? *found->second : *by_name[alias], &sum);
      }
  return sum.value();
}

}  // namespace loongforge::ir
