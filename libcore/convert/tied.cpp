#include "convert/tied.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace loongforge::convert {

bool same_values(const formats::TensorSource& source, const formats::StoredTensor& a,
                 const formats::StoredTensor& b) {
  if (a.shape != b.shape) return false;
  constexpr int64_t kStripe = int64_t{1} << 20;  // elements
  const int64_t step = std::max<int64_t>(1, kStripe / std::max<int64_t>(1, a.cols()));
  std::vector<float> left, right;
  for (int64_t r0 = 0; r0 < a.rows(); r0 += step) {
    const int64_t r1 = std::min(a.rows(), r0 + step);
    left.resize(static_cast<size_t>((r1 - r0) * a.cols()));
    right.resize(left.size());
    source.read_rows_f32(a, r0, r1, left);
    source.read_rows_f32(b, r0, r1, right);
    const bool same = std::equal(left.begin(), left.end(), right.begin(), [](float x, float y) {
      return x == y || (std::isnan(x) && std::isnan(y));
    });
    if (!same) return false;
  }
  return true;
}

const models::PlannedAlias* differing_alias(const formats::TensorSource& source,
                                            const models::ModelPlan& plan) {
  for (const models::PlannedAlias& alias : plan.aliases) {
    if (alias.source == nullptr) continue;
    const auto target =
        std::find_if(plan.tensors.begin(), plan.tensors.end(),
                     [&alias](const auto& each) { return each.name == alias.alias_of; });
    if (target != plan.tensors.end() && !same_values(source, *target->source, *alias.source))
      return &alias;
  }
  return nullptr;
}

}  // namespace loongforge::convert
