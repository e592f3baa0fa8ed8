// head: the output layer with its loss. Logits exist for a chunk of trained-on tokens at a time:
// product, softmax cross-entropy, gradient written over the logits, dX (and dW) from it. Rows
// without a target cost nothing.
//
// The loss is summed, not averaged: the engine divides once by the global count. How tokens are
// chunked does not change a bit: every product's sums go over the chunks in order (chunks are even,
// so pairs of k stay together). Source of the method: chunked cross-entropy as in Liger and
// Cut-Cross-Entropy.
#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

using kernels::Elem;
using kernels::GemmTerm;
using kernels::Mat;
using kernels::MatOut;

constexpr int64_t kLogitsBytes = 32 << 20;  // of a chunk

class Head final : public Op {
 public:
  Head(std::string name, const HeadSpec& spec) : Op(std::move(name), -1), s_(spec) {
    const int64_t fits =
        kLogitsBytes / (4 * spec.vocab) / 24 * 24;  // 24: a multiple of every row tile, and even
    chunk_ = std::clamp<int64_t>(fits, 48, 384);
  }

  std::vector<OutputSpec> outputs() const override { return {}; }
  std::vector<BufferSpec> temps(Phase) const override {
    if (!s_.with_loss) return {};
    return {{0, Elem::kF32, chunk_ * s_.vocab},
            {0, s_.elem, chunk_ * s_.k},
            {0, s_.elem, chunk_ * s_.k}};
  }
  bool trains() const override { return s_.trainable >= 0; }
  double forward_flops_per_token() const override {
    return 2.0 * static_cast<double>(s_.k) * static_cast<double>(s_.vocab);
  }

  void forward(RunContext& c, const Instruction& i) const override {
    Timed timed(c, &Profile::loss);
    const Mat x = c.mat(i.in[0]);
    if (c.logits != nullptr) last_logits(c, x);
    if (c.all_logits != nullptr) {
      const GemmTerm term{x, false, GemmTerm::B::kWeightT, &weight(c), {}, s_.k};
      product(c, {c.tokens(),
                  s_.vocab,
                  &term,
                  1,
                  {c.all_logits, s_.vocab, Elem::kF32},
                  false,
                  nullptr,
                  s_.precision});
    }
    if (s_.with_loss) loss(c, i, x);
  }
  // The gradient was made with the loss, in forward().
  void backward(RunContext&, const Instruction&) const override {}

 private:
  static void product(RunContext& c, const kernels::GemmJob& job) {
    Timed timed(c, &Profile::head_gemm);
    run_gemm(c.pool, job);
  }
  const kernels::PackedWeight& weight(RunContext& c) const {
    return c.params.weight(s_.weight).packed;
  }

  static void copy_row(const Mat& from, int64_t row, const MatOut& to, int64_t to_row,
                       int64_t cols) {
    const int64_t bytes = kernels::elem_bytes(from.elem);
    std::memcpy(static_cast<uint8_t*>(to.data) + to_row * to.ld * bytes,
                static_cast<const uint8_t*>(from.data) + row * from.ld * bytes,
                static_cast<size_t>(cols * bytes));
  }

  void last_logits(RunContext& c, const Mat& x) const {
    const int64_t docs = static_cast<int64_t>(c.batch.documents.size());
    std::vector<uint8_t> rows(static_cast<size_t>(docs * s_.k * kernels::elem_bytes(x.elem)));
    for (int64_t d = 0; d < docs; ++d) {
      const Document& doc = c.batch.documents[static_cast<size_t>(d)];
      copy_row(x, doc.row + doc.length - 1, {rows.data(), s_.k, x.elem}, d, s_.k);
    }
    const GemmTerm term{
        {rows.data(), s_.k, x.elem}, false, GemmTerm::B::kWeightT, &weight(c), {}, s_.k};
    product(
        c,
        {docs, s_.vocab, &term, 1, {c.logits, s_.vocab, Elem::kF32}, false, nullptr, s_.precision});
  }

  void loss(RunContext& c, const Instruction& i, const Mat& x) const {
    const bool gradient = s_.with_gradient && i.d_in[0].valid();
    const MatOut dx = gradient ? c.out(i.d_in[0]) : MatOut{nullptr, 0, s_.elem};
    if (gradient) {
      const size_t row = static_cast<size_t>(s_.k * kernels::elem_bytes(dx.elem));
      for (int64_t t = 0; t < c.tokens(); ++t)
        std::memset(static_cast<uint8_t*>(dx.data) + t * dx.ld * kernels::elem_bytes(dx.elem), 0,
                    row);
    }
    std::vector<int64_t> rows;
    for (int64_t t = 0; t < c.tokens(); ++t)
      if (c.batch.targets[static_cast<size_t>(t)] >= 0) rows.push_back(t);
    if (c.row_loss != nullptr) c.row_loss->assign(c.batch.ids.size(), 0.0f);
    if (rows.empty() && s_.with_gradient && s_.trainable >= 0)
      std::memset(weight_gradient(c), 0, static_cast<size_t>(s_.vocab * s_.k) * sizeof(float));
    std::vector<float> losses(rows.size());
    for (int64_t r = 0; r < static_cast<int64_t>(rows.size()); r += chunk_) {
      const int64_t n = std::min<int64_t>(chunk_, static_cast<int64_t>(rows.size()) - r);
      chunk(c, i, x, dx, rows.data() + r, n, losses.data() + r, r > 0);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      c.stats.loss_sum += static_cast<double>(losses[r]);
      if (c.row_loss != nullptr) (*c.row_loss)[static_cast<size_t>(rows[r])] = losses[r];
    }
    c.stats.valid += static_cast<int64_t>(rows.size());
  }

  float* weight_gradient(RunContext& c) const {
    return c.gradients + c.params.trainables()[static_cast<size_t>(s_.trainable)].offset;
  }

  void chunk(RunContext& c, const Instruction& i, const Mat& x, const MatOut& dx,
             const int64_t* rows, int64_t n, float* losses, bool accumulate) const {
    float* logits = c.raw<float>(i.temp[0]);
    const MatOut xs{c.out(i.temp[1]).data, s_.k, s_.elem};
    std::vector<int32_t> targets(static_cast<size_t>(n));
    for (int64_t r = 0; r < n; ++r) {
      copy_row(x, rows[r], xs, r, s_.k);
      targets[static_cast<size_t>(r)] = c.batch.targets[static_cast<size_t>(rows[r])] / 2;
    }
    const Mat x_rows{xs.data, xs.ld, xs.elem};
    const GemmTerm forward{x_rows, false, GemmTerm::B::kWeightT, &weight(c), {}, s_.k};
    product(
        c,
        {n, s_.vocab, &forward, 1, {logits, s_.vocab, Elem::kF32}, false, nullptr, s_.precision});
    const bool gradient = dx.data != nullptr || (s_.with_gradient && s_.trainable >= 0);
    const int64_t d_ld = s_.elem == Elem::kBf16 ? 2 * s_.vocab : s_.vocab;
    const MatOut d_out{gradient ? logits : nullptr, d_ld, s_.elem};
    c.pool.run(n, [&](int64_t r, int) {
      kernels::softmax_xent(logits, s_.vocab, s_.vocab, targets.data(), losses, d_out, r, r + 1);
    });
    if (!gradient) return;
    const Mat d_logits{logits, d_ld, s_.elem};
    if (dx.data != nullptr) {
      const MatOut dxs{c.out(i.temp[2]).data, s_.k, s_.elem};
      const GemmTerm back{d_logits, false, GemmTerm::B::kWeight, &weight(c), {}, s_.vocab};
      product(c, {n, s_.k, &back, 1, dxs, false, nullptr, s_.precision});
      for (int64_t r = 0; r < n; ++r) copy_row({dxs.data, dxs.ld, dxs.elem}, r, dx, rows[r], s_.k);
    }
    if (s_.trainable < 0) return;
    const GemmTerm dw{d_logits, true, GemmTerm::B::kPlain, nullptr, x_rows, n};
    product(c, {s_.vocab,
                s_.k,
                &dw,
                1,
                {weight_gradient(c), s_.k, Elem::kF32},
                accumulate,
                nullptr,
                s_.precision});
  }

  HeadSpec s_;
  int64_t chunk_;
};

}  // namespace

std::unique_ptr<Op> make_head(std::string name, const HeadSpec& spec) {
  return std::make_unique<Head>(std::move(name), spec);
}

}  // namespace loongforge::graph
