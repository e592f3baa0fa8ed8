#include "data/jinja/arguments.h"

#include <algorithm>

namespace loongforge::data::jinja {

Parameters::Parameters(const Args& args, std::string_view function,
                       std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (args.positional.size() > names_.size())
    fault(std::string(function) + " takes at most " + std::to_string(names_.size()) +
          " arguments, not " + std::to_string(args.positional.size()));
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) fault(std::string(function) + " has no parameter '" + name + "'");
    const Value*& slot = values_[static_cast<size_t>(at - names_.begin())];
    if (slot != nullptr) fault(std::string(function) + " got its parameter '" + name + "' twice");
    slot = &value;
  }
}

const Value& Parameters::require(size_t index) const {
  if (values_[index] == nullptr)
    fault(std::string(function_) + " needs its parameter '" + std::string(names_[index]) + "'");
  return *values_[index];
}

int64_t Parameters::integer(size_t index, int64_t otherwise) const {
  if (!given(index)) return otherwise;
  const Value& v = *values_[index];
  if (!v.is_integral())
    fault(std::string(function_) + ": '" + std::string(names_[index]) + "' is " + v.type_name() +
          ", not int");
  return v.integer();
}

bool Parameters::boolean(size_t index, bool otherwise) const {
  return values_[index] == nullptr ? otherwise : truthy(*values_[index]);
}

std::string Parameters::text(size_t index, std::string_view otherwise) const {
  if (!given(index)) return std::string(otherwise);
  const Value& v = *values_[index];
  if (!v.is_string())
    fault(std::string(function_) + ": '" + std::string(names_[index]) + "' is " + v.type_name() +
          ", not str");
  return v.string();
}

}  // namespace loongforge::data::jinja
