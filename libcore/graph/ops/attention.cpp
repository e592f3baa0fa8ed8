// attention: causal softmax(q k^T * scale) v per document, grouped-query; with a KV cache the new
// rows attend all cached ones.
#include "kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/ops/ops.h"
#include "graph/parallel.h"

namespace loongforge::graph {
namespace {

class Attention final : public Op {
 public:
  Attention(std::string name, int block, const AttentionSpec& spec)
      : Op(std::move(name), block), s_(spec) {}

  std::vector<OutputSpec> outputs() const override { return {{s_.heads * s_.head_dim, s_.elem}}; }
  std::vector<BufferSpec> aux() const override { return {{s_.heads, kernels::Elem::kF32}}; }
  Needs backward_needs() const override { return {{0, 1, 2}, {0}, {0}}; }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::attention);
    kernels::AttnJob job = base_job(c, i);
    job.o = c.out(i.out[0]);
    std::vector<kernels::AttnDoc> docs = training_docs(c);
    int64_t longest = 0;
    if (c.cache != nullptr) docs = {append_to_cache(c, i, &job)};
    for (const kernels::AttnDoc& d : docs) longest = std::max(longest, d.kv_len);
    c.pool.reserve_scratch(kernels::attention_scratch_bytes(job, longest, false));
    const std::vector<Task> tasks = cut(docs, c.pool.threads());
    c.pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t t, int worker) {
      const Task& task = tasks[static_cast<size_t>(t)];
      kernels::attention_forward(job, docs[task.doc], task.kv_head, task.q0, task.q1,
                                 c.pool.scratch(worker));
    });
  }

  void backward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::attention);
    kernels::AttnJob job = base_job(c, i);
    job.o_saved = c.mat(i.out[0]);
    job.d_o = c.mat(i.d_out[0]);
    job.dq = c.out(i.d_in[0]);
    job.dk = c.out(i.d_in[1]);
    job.dv = c.out(i.d_in[2]);
    const std::vector<kernels::AttnDoc> docs = training_docs(c);
    int64_t longest = 0;
    for (const kernels::AttnDoc& d : docs) longest = std::max(longest, d.kv_len);
    c.pool.reserve_scratch(kernels::attention_scratch_bytes(job, longest, true));
    c.pool.run(static_cast<int64_t>(docs.size()) * s_.kv_heads, [&](int64_t t, int worker) {
      kernels::attention_backward(job, docs[static_cast<size_t>(t / s_.kv_heads)], t % s_.kv_heads,
                                  c.pool.scratch(worker));
    });
  }

 private:
  struct Task {
    size_t doc;
    int64_t kv_head, q0, q1;
  };

  kernels::AttnJob base_job(RunContext& c, const Instruction& i) const {
    kernels::AttnJob job{};
    job.heads = s_.heads;
    job.kv_heads = s_.kv_heads;
    job.head_dim = s_.head_dim;
    job.scale = s_.scale;
    job.window = s_.window;
    job.precision = c.precision;
    job.q = c.mat(i.in[0]);
    job.k = c.mat(i.in[1]);
    job.v = c.mat(i.in[2]);
    job.lse = i.aux[0].valid() ? c.raw<float>(i.aux[0]) : nullptr;
    job.lse_ld = c.tokens();
    return job;
  }

  // Longest first, so that the last tasks to end are short ones.
  static std::vector<kernels::AttnDoc> training_docs(const RunContext& c) {
    std::vector<kernels::AttnDoc> docs;
    for (const Document& d : c.batch.documents) docs.push_back({d.row, d.length, d.row, d.length});
    std::stable_sort(docs.begin(), docs.end(),
                     [](const auto& a, const auto& b) { return a.kv_len > b.kv_len; });
    return docs;
  }

  std::vector<Task> cut(const std::vector<kernels::AttnDoc>& docs, int threads) const {
    const int64_t whole = static_cast<int64_t>(docs.size()) * s_.kv_heads;
    const int64_t pieces = whole >= 3 * threads ? 1 : (3 * threads + whole - 1) / whole;
    std::vector<Task> tasks;
    for (size_t d = 0; d < docs.size(); ++d) {
      constexpr int64_t kRows = 96;  // a multiple of every query tile
      const int64_t units = (docs[d].q_len + kRows - 1) / kRows, n = std::min(units, pieces);
      for (int64_t h = 0; h < s_.kv_heads; ++h)
        for (int64_t p = n - 1; p >= 0; --p)
          tasks.push_back(
              {d, h, units * p / n * kRows, std::min(docs[d].q_len, units * (p + 1) / n * kRows)});
    }
    return tasks;
  }

  kernels::AttnDoc append_to_cache(RunContext& c, const Instruction& i,
                                   kernels::AttnJob* job) const {
    KvCache& cache = *c.cache;
    const int64_t cols = s_.kv_heads * s_.head_dim, bytes = kernels::elem_bytes(cache.elem());
    KvCache::Entry& entry = cache.entry(name(), cols);
    const int64_t past = cache.length(), fresh = c.tokens();
    auto append = [&](const kernels::Mat& from, AlignedBuffer& to) {
      for (int64_t t = 0; t < fresh; ++t)
        std::memcpy(to.data() + (past + t) * cols * bytes,
                    static_cast<const uint8_t*>(from.data) + t * from.ld * bytes,
                    static_cast<size_t>(cols * bytes));
    };
    append(c.mat(i.in[1]), entry.keys);
    append(c.mat(i.in[2]), entry.values);
    job->k = {entry.keys.data(), cols, cache.elem()};
    job->v = {entry.values.data(), cols, cache.elem()};
    return {0, fresh, 0, past + fresh};
  }

  AttentionSpec s_;
};

}  // namespace

std::unique_ptr<Op> make_attention(std::string name, int block, const AttentionSpec& spec) {
  return std::make_unique<Attention>(std::move(name), block, spec);
}

}  // namespace loongforge::graph
