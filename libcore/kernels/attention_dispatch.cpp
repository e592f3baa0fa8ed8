#include "kernels/attention.h"
#include "kernels/dispatch.h"
#include "kernels/generic/attention.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(AttentionTable, kAttentionTable)

size_t attention_scratch_bytes(const AttnJob& job, int64_t max_kv_len, bool backward) noexcept {
  return LF_TABLE(kAttentionTable).scratch_bytes(job, max_kv_len, backward);
}

void attention_forward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0,
                       int64_t q1, void* scratch) noexcept {
  LF_TABLE(kAttentionTable).forward(job, doc, kv_head, q0, q1, scratch);
}

void attention_backward(const AttnJob& job, const AttnDoc& doc, int64_t kv_head,
                        void* scratch) noexcept {
  LF_TABLE(kAttentionTable)
      .backward(job, doc, kv_head, 0, doc.q_len, 0, doc.kv_len, true, true, scratch);
}

void attention_backward_queries(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0,
                                int64_t q1, void* scratch) noexcept {
  LF_TABLE(kAttentionTable)
      .backward(job, doc, kv_head, q0, q1, 0, doc.kv_len, true, false, scratch);
}

void attention_backward_keys(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t k0,
                             int64_t k1, void* scratch) noexcept {
  // The queries that see a key of [k0, k1), from an even one: sums over queries run in pairs.
  int64_t q1 = doc.q_len;
  if (job.window > 0 && k1 - 1 + job.window < q1) q1 = k1 - 1 + job.window;
  LF_TABLE(kAttentionTable)
      .backward(job, doc, kv_head, k0 / 2 * 2, q1, k0, k1, false, true, scratch);
}

extern const Family kAttentionFamily = {"attention", LF_TABLE_FOR(kAttentionTable), {}};

}  // namespace loongforge::kernels
