// Speed of attention, forward and backward, against the peak of the multiply-add instruction:
// useful causal flops only (4 head_dim per query and visible key forward, 10 backward).
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "bench/options.h"
#include "kernels/attention.h"

namespace {

using namespace loongforge;
using namespace loongforge::kernels;
using namespace loongforge::bench;

struct Shape {
  int64_t docs, length, heads, kv_heads, dim;
  Precision precision = Precision::kBf16;
};
const Shape kShapes[] = {
    {4, 512, 9, 3, 64},  // SmolLM2-135M, 4 x 512
    {16, 128, 9, 3, 64},  {1, 512, 9, 3, 64},  {1, 2048, 9, 3, 64},
    {1, 4096, 9, 3, 64},  {1, 512, 8, 2, 128}, {1, 2048, 8, 2, 128},
    {1, 4096, 8, 2, 128}, {1, 2048, 4, 4, 64}, {1, 2048, 8, 2, 128, Precision::kF32},
};

std::string name_of(const Shape& s) {
  return std::to_string(s.docs) + " x " + std::to_string(s.length) +
         ", D=" + std::to_string(s.dim) + ", heads " + std::to_string(s.heads) + ":" +
         std::to_string(s.kv_heads) + (s.precision == Precision::kBf16 ? "" : ", fp32");
}

class Case {
 public:
  Case(const Shape& s, ThreadPool& pool) : s_(s), pool_(pool) {
    const int64_t rows = s.docs * s.length, q_cols = s.heads * s.dim, kv_cols = s.kv_heads * s.dim;
    for (int64_t d = 0; d < s.docs; ++d)
      docs_.push_back({d * s.length, s.length, d * s.length, s.length});
    const Elem elem = s.precision == Precision::kBf16 ? Elem::kBf16 : Elem::kF32;
    const auto take = [&](int64_t cols) {
      buffers_.emplace_back(static_cast<size_t>(rows * cols * elem_bytes(elem)) + 64);
      fill(buffers_.back().data(), elem, rows * cols);
      return MatOut{buffers_.back().data(), cols, elem};
    };
    const auto in = [](const MatOut& m) { return Mat{m.data, m.ld, m.elem}; };
    job_.heads = s.heads;
    job_.kv_heads = s.kv_heads;
    job_.head_dim = s.dim;
    job_.scale = 1.0f / std::sqrt(static_cast<float>(s.dim));
    job_.precision = s.precision;
    job_.q = in(take(q_cols));
    job_.k = in(take(kv_cols));
    job_.v = in(take(kv_cols));
    job_.o = take(q_cols);
    job_.o_saved = in(job_.o);
    job_.d_o = in(take(q_cols));
    job_.dq = take(q_cols);
    job_.dk = take(kv_cols);
    job_.dv = take(kv_cols);
    lse_.resize(static_cast<size_t>(s.heads * rows));
    job_.lse = lse_.data();
    job_.lse_ld = rows;
    pool.reserve_scratch(std::max(attention_scratch_bytes(job_, s.length, false),
                                  attention_scratch_bytes(job_, s.length, true)));
    forward();
  }

  // GF/s. The calls are those that training makes (graph/ops/attention.cpp): a document's queries
  // whole, or in two parts of about the same work where there are few documents; whole backward.
  double forward() {
    const int64_t parts = s_.docs * s_.kv_heads >= 3 * pool_.threads() ? 1 : 2;
    return flops(4) /
           run_timed(pool_, s_.docs * s_.kv_heads * parts,
                     [&](int64_t task, int worker) {
                       const int64_t part = task % parts, rest = task / parts;
                       const AttnDoc& doc = docs_[static_cast<size_t>(rest / s_.kv_heads)];
                       const int64_t cut = doc.q_len * 11 / 16 / 96 * 96;
                       const int64_t q0 = part == 0 ? 0 : cut;
                       const int64_t q1 = part + 1 == parts ? doc.q_len : cut;
                       attention_forward(job_, doc, rest % s_.kv_heads, q0, q1,
                                         pool_.scratch(worker));
                     }) *
           1e-9;
  }
  double backward() {
    return flops(10) /
           run_timed(pool_, s_.docs * s_.kv_heads,
                     [&](int64_t task, int worker) {
                       attention_backward(job_, docs_[static_cast<size_t>(task / s_.kv_heads)],
                                          task % s_.kv_heads, pool_.scratch(worker));
                     }) *
           1e-9;
  }

 private:
  double flops(double per_score) const {
    const auto n = static_cast<double>(s_.length);
    return per_score * static_cast<double>(s_.dim * s_.heads * s_.docs) * n * (n + 1) / 2;
  }
  void fill(uint8_t* p, Elem elem, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float x = static_cast<float>(random_() & 0xFFFF) * 0x1p-15f - 1.0f;
      uint32_t u = 0;
      std::memcpy(&u, &x, 4);
      const auto half = static_cast<uint16_t>(u >> 16);
      if (elem == Elem::kF32) {
        std::memcpy(p + i * 4, &x, 4);
      } else {
        std::memcpy(p + i * 2, &half, 2);
      }
    }
  }

  Shape s_;
  ThreadPool& pool_;
  std::mt19937 random_{1};
  std::vector<AttnDoc> docs_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<float> lse_;
  AttnJob job_{};
};

void run(const RowOptions& options, Isa isa, int threads) {
  set_active_isa(isa);
  ThreadPool pool(threads);
  for (const Shape& s : kShapes) {
    const std::string name = name_of(s);
    if (!options.wants(name)) continue;
    Case c(s, pool);
    Rounds rounds;
    std::vector<size_t> limits;
    for (const FmaKind kind : fma_kinds(isa, s.precision))
      limits.push_back(rounds.add(fma_name(kind), [&pool, kind] { return fma_peak(pool, kind); }));
    const size_t forward = rounds.add("forward", [&] { return c.forward(); });
    const size_t backward = rounds.add("backward", [&] { return c.backward(); });
    rounds.run(isa == Isa::kScalar ? 2 : options.rounds);
    for (const size_t i : {forward, backward})
      std::printf("%-7s %d %-32s %-9s %8.1f %8.1f %8.3f %8.3f\n", isa_name(isa), threads,
                  name.c_str(), rounds.name(i).c_str(), rounds.best(i), rounds.best(limits),
                  rounds.median_ratio(i, limits), rounds.best_ratio(i, limits));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("attention-bench", argc, argv, [](const std::vector<std::string>& words) {
    const RowOptions options = parse_row_options("attention-bench", words);
    std::vector<std::string> rows;
    for (const Shape& s : kShapes) rows.push_back(name_of(s));
    options.check_only(rows);
    std::printf("%-7s %s %-32s %-9s %8s %8s %8s %8s\n", "isa", "t", "documents", "pass", "GF/s",
                "peak", "median", "best");
    for (const Isa isa : options.isas)
      for (const int threads : options.threads) run(options, isa, threads);
    return 0;
  });
}
