#include "kernels/op_list.h"

namespace loongforge::kernels {

extern const Family kAttentionFamily, kGemmFamily, kLossFamily, kOptimFamily, kQuantFamily,
    kReduceFamily, kRowsFamily;

namespace {

constexpr int kDirections = 4, kFormats = 3;
constexpr size_t kMaxOps = 128;

struct List {
  Op ops[kMaxOps];
  size_t count = 0;

  List() noexcept {
    for (const Family* family : families()) {
      for (const OpRow& row : family->fp8) {
        for (int d = 0; d < kDirections; ++d) {
          for (int f = 0; f < kFormats; ++f) {
            const auto direction = static_cast<Direction>(d);
            const auto format = static_cast<OpFormat>(f);
            if ((row.directions & one(direction)) == 0 || (row.formats & one(format)) == 0)
              continue;
            if (count < kMaxOps) ops[count++] = {family, &row, direction, format};
          }
        }
      }
    }
  }
};

}  // namespace

const char* direction_name(Direction direction) noexcept {
  static constexpr const char* kNames[] = {"none", "forward", "backward_input", "backward_weight"};
  return kNames[static_cast<int>(direction)];
}

const char* format_name(OpFormat format) noexcept {
  static constexpr const char* kNames[] = {"e4m3", "e5m2", "hybrid"};
  return kNames[static_cast<int>(format)];
}

std::span<const Family* const> families() noexcept {
  static constexpr const Family* kAll[] = {&kQuantFamily, &kGemmFamily, &kAttentionFamily,
                                           &kRowsFamily,  &kLossFamily, &kOptimFamily,
                                           &kReduceFamily};
  return kAll;
}

std::span<const Op> fp8_ops() noexcept {
  static const List list;
  return {list.ops, list.count};
}

}  // namespace loongforge::kernels
