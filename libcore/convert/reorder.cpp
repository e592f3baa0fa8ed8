#include "convert/reorder.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace loongforge::convert {

RowSource reorder_heads(RowSource rows, int64_t heads, HeadOrder order) {
  const bool vector = rows.rows == 1;
  const int64_t all = vector ? rows.cols : rows.rows, width = vector ? 1 : rows.cols;
  const int64_t head = all / heads;
  RowSource out;
  out.rows = rows.rows;
  out.cols = rows.cols;
  out.read_f32 = [read = std::move(rows.read_f32), vector, all, width, head, order](
                     int64_t r0, int64_t r1, std::span<float> to) {
    if (vector) {
      r0 = 0;
      r1 = all;
    }
    const int64_t first = r0 / head * head, last = std::min(all, (r1 + head - 1) / head * head);
    std::vector<float> from(static_cast<size_t>((last - first) * width));
    if (vector) {
      read(0, 1, from);
    } else {
      read(first, last, from);
    }
    for (int64_t r = r0; r < r1; ++r) {
      const int64_t in_head = r % head, half = head / 2;
      const int64_t other = order == HeadOrder::kFromPairs ? 2 * (in_head % half) + in_head / half
                                                           : in_head % 2 * half + in_head / 2;
      std::copy_n(from.data() + (r - in_head + other - first) * width, width,
                  to.data() + (r - r0) * width);
    }
  };
  return out;
}

}  // namespace loongforge::convert
