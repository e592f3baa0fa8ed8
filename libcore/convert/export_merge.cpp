#include "convert/export_merge.h"

#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace loongforge::convert {

std::map<std::string, const formats::PeftModule*> plan_merge(const formats::PeftAdapter& adapter,
                                                             const models::Family& family,
                                                             const ir::Model& model) {
  std::unordered_map<std::string, std::string> stored;  // Hugging Face name -> LoongIR name
  for (const models::ExportTensor& each : family.to_hugging_face != nullptr
                                              ? family.to_hugging_face(model)
                                              : models::same_names(model))
    stored.emplace(each.name, each.loongir);
  std::map<std::string, const formats::PeftModule*> merged;
  for (const formats::PeftModule& module : adapter.modules()) {
    const std::string name = module.module + ".weight";
    const std::string where = module.a->where();
    const ir::TensorEntry* named = model.find_tensor(name);
    if (named != nullptr && !named->alias_of.empty()) {
      throw_bad_data(where,
                     "adapts " + module.module + ", which is tied to " + named->alias_of +
                         ": it cannot be merged alone",
                     "export it with --export peft");
    }
    const auto found = stored.find(name);
    if (found == stored.end())
      throw_bad_data(where, "adapts " + module.module + ", which the model does not have");
    const ir::TensorEntry& entry = model.stored_tensor(found->second);
    if (entry.shape != std::vector<int64_t>{module.out, module.in})
      throw_bad_data(where,
                     "adapts " + module.module + " with other dimensions than the model has");
    merged.emplace(entry.name, &module);
  }
  return merged;
}

}  // namespace loongforge::convert
