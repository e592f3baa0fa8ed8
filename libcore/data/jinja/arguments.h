// The arguments of one call, matched to a function's parameter names. Thread-safety: one object per
// call.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "data/jinja/value.h"

namespace loongforge::data::jinja {

class Parameters {
 public:
  // Fault naming `function` where there are too many arguments, an unknown name or one value too
  // many for a parameter.
  Parameters(const Args& args, std::string_view function,
             std::initializer_list<std::string_view> names);

  // Null when the parameter was not given.
  const Value* get(size_t index) const { return values_[index]; }
  const Value& require(size_t index) const;
  // The value as a kind, or the default where it was not given. Fault for another kind.
  int64_t integer(size_t index, int64_t otherwise) const;
  bool boolean(size_t index,
               bool otherwise) const;  // by truthiness, as Python functions take flags
  std::string text(size_t index, std::string_view otherwise) const;
  bool given(size_t index) const { return values_[index] != nullptr && !values_[index]->is_none(); }

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace loongforge::data::jinja
