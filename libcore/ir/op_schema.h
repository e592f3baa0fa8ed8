// What the file format says of each op: how many inputs, which parameters, which attributes
// (ir/model.h has the table in words). What an op computes is graph/'s; this is only what makes a
// file well-formed. Thread-safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "base/api.h"

namespace loongforge::ir {

enum class AttrType { kInt, kNumber, kObject };

struct AttrSchema {
  std::string_view name;
  AttrType type;
  bool required;
};

struct ParamSchema {
  std::string_view role;
  int rank;
  bool required;
};

struct OpSchema {
  std::string_view op;
  int inputs;
  bool takes_token_ids;  // its input is the model's input
  std::span<const ParamSchema> params;
  std::span<const AttrSchema> attrs;
};

LF_API std::span<const OpSchema> op_schemas() noexcept;
LF_API const OpSchema* find_op_schema(std::string_view op) noexcept;  // null when unknown

}  // namespace loongforge::ir
