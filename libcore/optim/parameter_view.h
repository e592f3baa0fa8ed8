// Where trained arrays lie. Parameters, gradients and moments are flat FP32 buffers that share one
// layout, so one list of views describes all of them.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/types.h"

namespace loongforge::optim {

// rows x cols floats, row-major, at `offset` floats in each buffer. Vectors have one row. Views do
// not overlap.
struct ParameterView {
  std::string name;
  int64_t rows = 0, cols = 0;
  int64_t offset = 0;
  bool decay = false;  // weight decay applies: true for 2-D weights, false for norms and biases
  // The master: its element (kF32 or kBf16), and where it lies in the buffer of that element; below
  // 0: at `offset`.
  kernels::Elem master = kernels::Elem::kF32;
  int64_t master_offset = -1;
  int64_t size() const { return rows * cols; }
  int64_t master_at() const { return master_offset < 0 ? offset : master_offset; }
};

// Length of a buffer that holds all views.
inline int64_t buffer_floats(const std::vector<ParameterView>& views) {
  int64_t end = 0;
  for (const ParameterView& view : views) {
    if (view.offset + view.size() > end) end = view.offset + view.size();
  }
  return end;
}

}  // namespace loongforge::optim
