#include "graph/executor.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/gemm.h"

namespace loongforge::graph {

Executor::Executor(Plan plan, Parameters& params, ThreadPool& pool)
    : plan_(std::move(plan)), params_(params), pool_(pool) {
  pool_.reserve_scratch(kernels::gemm_scratch_bytes());
}

const MemoryLayout& Executor::layout(int64_t tokens) {
  constexpr size_t kKept =
      64;  // layouts are small; batches of training repeat a few sizes, ragged ones do not
  auto it = layouts_.find(tokens);
  if (it != layouts_.end()) return it->second;
  if (layouts_.size() >= kKept) layouts_.clear();
  return layouts_.emplace(tokens, lay_out(plan_, tokens)).first->second;
}

size_t Executor::arena_bytes(int64_t tokens) { return layout(tokens).total; }

void Executor::reserve(int64_t tokens) {
  const size_t bytes = layout(tokens).total;
  if (bytes > arena_.size()) {
    arena_ = AlignedBuffer();
    arena_ = AlignedBuffer(bytes, Pages::kTransparent);
  }
}

RunStats Executor::run(const Batch& batch, const RunRequest& request) {
  for (const Document& d : batch.documents) {
    const int64_t past = request.cache == nullptr ? 0 : request.cache->length();
    if (past + d.length > plan_.options.max_positions)
      throw_failed("", "a document of " + std::to_string(past + d.length) +
                           " tokens exceeds the plan's " +
                           std::to_string(plan_.options.max_positions));
  }
  reserve(batch.tokens());
  RunContext context{pool_, params_, batch};
  context.precision = plan_.options.recipe.operands();
  context.scaling = scaling_;
  context.measure_errors = measure_errors_;
  context.arena = arena_.data();
  context.buffers = &plan_.buffers;
  context.offsets = &layout(batch.tokens()).offsets;
  context.gradients = request.gradients;
  context.masks = request.masks;
  context.cache = request.cache;
  context.logits = request.logits;
  context.all_logits = request.all_logits;
  context.row_loss = request.row_loss;
  context.profile = request.profile;
  size_t unit = 0;
  for (size_t n = 0; n < plan_.program.size(); ++n) {
    const Instruction& i = plan_.program[n];
    if (i.phase == Phase::kBackward)
      i.op->backward(context, i);
    else
      i.op->forward(context, i);
    for (; unit < plan_.units.size() && plan_.units[unit].instruction == n; ++unit)
      if (request.on_unit) request.on_unit(plan_.units[unit].block);
  }
  if (request.cache != nullptr) request.cache->advance(batch.tokens());
  return context.stats;
}

}  // namespace loongforge::graph
