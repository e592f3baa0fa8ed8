// Places buffers in the arena by their lifetimes: the largest first, each at the lowest offset that
// is free while it lives.
#include <algorithm>
#include <numeric>
#include <vector>

#include "graph/plan.h"

namespace loongforge::graph {
namespace {

struct Lifetime {
  int64_t first = -1, last = -1;
};

std::vector<Lifetime> lifetimes(const Plan& plan) {
  std::vector<Lifetime> lives(plan.buffers.size());
  for (size_t i = 0; i < plan.program.size(); ++i) {
    const Instruction& step = plan.program[i];
    auto use = [&](const std::vector<View>& views) {
      for (const View& view : views) {
        if (!view.valid()) continue;
        Lifetime& life = lives[static_cast<size_t>(view.buffer)];
        if (life.first < 0) life.first = static_cast<int64_t>(i);
        life.last = static_cast<int64_t>(i);
      }
    };
    for (const auto* views :
         {&step.in, &step.out, &step.aux, &step.d_out, &step.d_in, &step.residual, &step.temp})
      use(*views);
  }
  return lives;
}

}  // namespace

MemoryLayout lay_out(const Plan& plan, int64_t tokens) {
  constexpr size_t kAlign =
      4096;  // buffers begin on pages, so that an unused tail is never touched
  const std::vector<Lifetime> lives = lifetimes(plan);
  std::vector<size_t> sizes(plan.buffers.size());
  for (size_t b = 0; b < sizes.size(); ++b) {
    const BufferSpec& spec = plan.buffers[b];
    const int64_t elements = tokens * spec.cols + spec.fixed;
    sizes[b] = (static_cast<size_t>(elements * kernels::elem_bytes(spec.elem)) + kAlign - 1) /
               kAlign * kAlign;
  }
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });

  MemoryLayout layout;
  layout.offsets.assign(sizes.size(), 0);
  std::vector<size_t> placed, overlapping;
  for (size_t b : order) {
    if (lives[b].first < 0) continue;
    overlapping.clear();
    for (size_t p : placed)
      if (lives[p].first <= lives[b].last && lives[b].first <= lives[p].last)
        overlapping.push_back(p);
    std::sort(overlapping.begin(), overlapping.end(),
              [&](size_t x, size_t y) { return layout.offsets[x] < layout.offsets[y]; });
    size_t offset = 0;
    for (size_t p : overlapping) {
      if (layout.offsets[p] >= offset + sizes[b]) break;
      offset = std::max(offset, layout.offsets[p] + sizes[p]);
    }
    layout.offsets[b] = offset;
    layout.total = std::max(layout.total, offset + sizes[b]);
    placed.push_back(b);
  }
  return layout;
}

}  // namespace loongforge::graph
