#include "ir/op_schema.h"

namespace loongforge::ir {
namespace {

constexpr ParamSchema kMatrix[] = {{"weight", 2, true}};
constexpr ParamSchema kVector[] = {{"weight", 1, true}};
constexpr ParamSchema kLinear[] = {{"weight", 2, true}, {"bias", 1, false}};

constexpr AttrSchema kNormAttrs[] = {{"eps", AttrType::kNumber, true},
                                     {"group", AttrType::kInt, false}};
constexpr AttrSchema kLinearAttrs[] = {{"in", AttrType::kInt, true}, {"out", AttrType::kInt, true}};
constexpr AttrSchema kRopeAttrs[] = {{"heads", AttrType::kInt, true},
                                     {"head_dim", AttrType::kInt, true},
                                     {"theta", AttrType::kNumber, true},
                                     {"rotary_dim", AttrType::kInt, true},
                                     {"scaling", AttrType::kObject, false}};
constexpr AttrSchema kAttentionAttrs[] = {{"heads", AttrType::kInt, true},
                                          {"kv_heads", AttrType::kInt, true},
                                          {"head_dim", AttrType::kInt, true},
                                          {"scale", AttrType::kNumber, true},
                                          {"window", AttrType::kInt, false}};

constexpr OpSchema kSchemas[] = {
    {"embedding", 1, true, kMatrix, {}},
    {"rms_norm", 1, false, kVector, kNormAttrs},
    {"linear", 1, false, kLinear, kLinearAttrs},
    {"rope", 1, false, {}, kRopeAttrs},
    {"attention", 3, false, {}, kAttentionAttrs},
    {"swiglu", 2, false, {}, {}},
    {"add", 2, false, {}, {}},
};

}  // namespace

std::span<const OpSchema> op_schemas() noexcept { return kSchemas; }

const OpSchema* find_op_schema(std::string_view op) noexcept {
  for (const OpSchema& schema : kSchemas) {
    if (schema.op == op) return &schema;
  }
  return nullptr;
}

}  // namespace loongforge::ir
