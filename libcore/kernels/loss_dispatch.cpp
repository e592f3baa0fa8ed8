#include "kernels/dispatch.h"
#include "kernels/generic/tables.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(LossTable, kLossTable)

void softmax_xent(const float* logits, int64_t ld, int64_t vocab, const int32_t* targets,
                  float* loss, MatOut d_logits, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kLossTable).xent(logits, ld, vocab, targets, loss, d_logits, r0, r1);
}

int64_t argmax(const float* row, int64_t n) noexcept {
  return LF_TABLE(kLossTable).largest(row, n);
}

extern const Family kLossFamily = {"loss", LF_TABLE_FOR(kLossTable), {}};

}  // namespace loongforge::kernels
