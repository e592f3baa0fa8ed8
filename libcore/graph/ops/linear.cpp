// linear: y_s = x W_s^T + bias_s + scale (x A_s^T) B_s^T for segments s that share x. Weights are
// FP8 codes, bf16 or fp32.
//
// Backward (DESIGN 4): dX = sum_s dY_s W_s + dH A in one product over all terms; dH_s = dY_s (scale
// B_s); dA = dH^T X and dW_s = dY_s^T X with X as it was saved (FP8 codes, 1 x 128 blocks); dB_s^T
// = scale H_s^T dY_s; dbias_s = 1^T dY_s. With dropout A reads a masked copy of x; the same mask is
// applied again to the saved codes. With Activations::kCompute x and dY are FP8 before any product
// with W (and x before A): forward, dX and dW use the values of one set of codes. The adapters' dH
// and dB read dY as it is. Those products read the codes themselves where a CPU multiplies FP8
// (kernels/native_fp8.h), else their values, decoded once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/ops/ops.h"
#include "graph/parallel.h"
#include "kernels/native_fp8.h"
#include "kernels/optim.h"
#include "kernels/rows.h"

namespace loongforge::graph {
namespace {

using kernels::Elem;
using kernels::GemmJob;
using kernels::GemmTerm;
using kernels::Mat;
using kernels::MatOut;

GemmTerm weight_term(const Mat& a, const kernels::PackedWeight& w, bool transposed) {
  return {a,  false, transposed ? GemmTerm::B::kWeightT : GemmTerm::B::kWeight,
          &w, {},    transposed ? w.k : w.n};
}
GemmTerm plain_term(const Mat& a, bool a_transposed, const Mat& b, bool b_transposed, int64_t k) {
  return {a, a_transposed, b_transposed ? GemmTerm::B::kPlainT : GemmTerm::B::kPlain, nullptr, b,
          k};
}

class Linear final : public Op {
 public:
  Linear(std::string name, int block, LinearSpec spec)
      : Op(std::move(name), block), s_(std::move(spec)) {
    for (const LinearSegment& seg : s_.segments) {
      trains_weights_ |= seg.trainable >= 0;
      trains_biases_ |= seg.bias_trainable >= 0;
    }
    native_ = computes() && kernels::native_fp8() != nullptr;
  }

  std::vector<OutputSpec> outputs() const override {
    std::vector<OutputSpec> specs;
    for (const LinearSegment& seg : s_.segments) specs.push_back({seg.n, s_.elem});
    return specs;
  }
  // H = x A^T of all adapters; with dropout the masked copy of x and the mask are made anew in the
  // backward.
  std::vector<BufferSpec> aux() const override {
    if (s_.total_rank == 0) return {};
    return {{s_.total_rank, s_.elem}};
  }
  std::vector<BufferSpec> temps(Phase phase) const override {
    std::vector<BufferSpec> specs(kTemps);
    const bool forward = phase != Phase::kBackward;
    if (s_.dropout > 0) {
      specs[kMask] = {mask_bytes(), Elem::kE4M3};
      specs[kMasked] = {s_.k, s_.elem};
    }
    if (computes()) {
      if (forward && !native_) specs[kImage] = {s_.k, s_.elem};
      if (!forward) {
        int64_t all = 0, widest = 0, all_blocks = 0, most_blocks = 0;
        for (const LinearSegment& seg : s_.segments) {
          all += seg.n;
          widest = std::max(widest, seg.n);
          all_blocks += seg.gradient.exps_ld();
          most_blocks = std::max(most_blocks, seg.gradient.exps_ld());
        }
        specs[kDySource] = {widest, s_.elem};
        if (!native_) specs[kDyImage] = {all, s_.elem};
        specs[kDyCodes] = {native_ ? all : widest, Elem::kE4M3};
        specs[kDyExps] = {native_ ? all_blocks : most_blocks, Elem::kE4M3};
      }
    }
    if (quantizes() || (forward && computes())) {
      specs[kCodes] = {s_.k, Elem::kE4M3};
      specs[kExps] = {s_.input.exps_ld(), Elem::kE4M3};
    }
    if (forward) return specs;
    if (s_.total_rank > 0) specs[kDh] = {s_.total_rank, s_.elem};
    if (trains_biases_) specs[kOnes] = {1, Elem::kF32};
    return specs;
  }
  Needs backward_needs() const override {
    if (s_.total_rank > 0) return {{0}, {}, {0}};
    return trains_weights_ ? Needs{{0}, {}, {}} : Needs{};
  }
  bool trains() const override { return trains_weights_ || s_.total_rank > 0; }
  double forward_flops_per_token() const override {
    double n = 0;
    for (const LinearSegment& seg : s_.segments) n += static_cast<double>(seg.n);
    return 2.0 * n * static_cast<double>(s_.k);
  }

  void forward(RunContext& c, const Instruction& i) const override {
    Mat x = c.mat(i.in[0]);
    if (computes()) {
      const MatOut image = native_ ? no_image() : c.out(i.temp[kImage]);
      const Mat codes = input_codes(c, i, image, i.phase == Phase::kForward);
      x = native_ ? codes : Mat{image.data, image.ld, image.elem};
    }
    if (s_.total_rank > 0) project_down(c, i, x);
    Timed timed(c, &Profile::gemm);
    int64_t rank0 = 0;
    for (size_t s = 0; s < s_.segments.size(); ++s) {
      const LinearSegment& seg = s_.segments[s];
      GemmTerm terms[2] = {weight_term(x, c.params.weight(seg.weight).packed, true), {}};
      int n_terms = 1;
      if (const Adapter* a = adapter(c, seg); a != nullptr) {
        const Mat h = columns(c.mat(i.aux[0]), rank0);
        terms[n_terms++] =
            plain_term(h, false, {a->scaled_b_t.as<float>(), a->n, Elem::kF32}, false, a->rank);
        rank0 += a->rank;
      }
      const float* bias = seg.bias.empty() ? nullptr : c.params.vector(seg.bias);
      run_gemm(c.pool,
               {c.tokens(), seg.n, terms, n_terms, c.out(i.out[s]), false, bias, s_.precision});
    }
  }

  void backward(RunContext& c, const Instruction& i) const override {
    if (s_.total_rank > 0) adapter_gradients_of_output(c, i);
    std::vector<Mat> dy;
    for (const View& view : i.d_out) dy.push_back(c.mat(view));
    if (computes() && (trains_weights_ || i.d_in[0].valid())) round_gradients(c, i, &dy);
    if (trains()) {
      const Mat x = saved_input(c, i);
      if (s_.total_rank > 0) {
        Timed timed(c, &Profile::adapter_gemm);
        const Mat dh = c.mat(i.temp[kDh]);
        for_adapter_groups(c, [&](const Adapter& first, int64_t rank0, int64_t ranks) {
          const GemmTerm term = plain_term(columns(dh, rank0), true, x, false, c.tokens());
          const MatOut out{gradient(c, first.a), s_.k, Elem::kF32};
          run_gemm(c.pool, {ranks, s_.k, &term, 1, out, false, nullptr, s_.precision});
        });
      }
      Timed timed(c, &Profile::gemm);
      for (size_t s = 0; s < s_.segments.size() && trains_weights_; ++s) {
        const GemmTerm term = plain_term(dy[s], true, x, false, c.tokens());
        const MatOut out{gradient(c, s_.segments[s].trainable), s_.k, Elem::kF32};
        run_gemm(c.pool, {s_.segments[s].n, s_.k, &term, 1, out, false, nullptr, s_.precision});
      }
    }
    if (trains_biases_) bias_gradients(c, i);
    if (i.d_in[0].valid()) input_gradient(c, i, dy);
  }

 private:
  enum Temp {
    kMask,
    kMasked,
    kDh,
    kOnes,
    kCodes,
    kExps,
    kImage,
    kDyCodes,
    kDyExps,
    kDySource,
    kDyImage,
    kTemps
  };

  bool quantizes() const {
    return trains() && s_.activations != quant::Activations::kOff && s_.elem == Elem::kBf16;
  }
  bool computes() const {
    return s_.activations == quant::Activations::kCompute && s_.elem == Elem::kBf16;
  }
  int64_t mask_bytes() const { return (s_.k + 7) / 8; }
  MatOut no_image() const { return {nullptr, 0, s_.elem}; }
  const Adapter* adapter(RunContext& c, const LinearSegment& seg) const {
    return seg.path.empty() ? nullptr : c.params.adapter(seg.path);
  }
  static Mat columns(Mat m, int64_t col0) {
    m.data = static_cast<const uint8_t*>(m.data) + col0 * kernels::elem_bytes(m.elem);
    return m;
  }
  static MatOut columns(MatOut m, int64_t col0) {
    m.data = static_cast<uint8_t*>(m.data) + col0 * kernels::elem_bytes(m.elem);
    return m;
  }
  float* gradient(RunContext& c, int trainable) const {
    return c.gradients + c.params.trainables()[static_cast<size_t>(trainable)].offset;
  }

  // f(first adapter, first rank column, ranks): runs of adapters whose A stand side by side in
  // memory.
  template <class F>
  void for_adapter_groups(RunContext& c, F&& f) const {
    const Adapter* first = nullptr;
    int64_t rank0 = 0, ranks = 0;
    for (const LinearSegment& seg : s_.segments) {
      const Adapter* a = adapter(c, seg);
      if (a == nullptr) continue;
      const auto& list = c.params.trainables();
      if (first != nullptr && list[static_cast<size_t>(first->a)].offset + ranks * s_.k !=
                                  list[static_cast<size_t>(a->a)].offset) {
        f(*first, rank0, ranks);
        rank0 += ranks;
        ranks = 0;
        first = nullptr;
      }
      if (first == nullptr) first = a;
      ranks += a->rank;
    }
    if (first != nullptr) f(*first, rank0, ranks);
  }

  void project_down(RunContext& c, const Instruction& i, Mat x) const {
    if (s_.dropout > 0) x = masked(c, i, native_ ? decoded(c, i, x) : x);
    Timed timed(c, &Profile::adapter_gemm);
    const MatOut h = c.out(i.aux[0]);
    for_adapter_groups(c, [&](const Adapter& first, int64_t rank0, int64_t ranks) {
      const GemmTerm term =
          plain_term(x, false, {c.params.master(first.a), s_.k, Elem::kF32}, true, s_.k);
      run_gemm(c.pool,
               {c.tokens(), ranks, &term, 1, columns(h, rank0), false, nullptr, s_.precision});
    });
  }

  // Dropout's copy of x: the same bits for every call in a step.
  Mat masked(RunContext& c, const Instruction& i, const Mat& x) const {
    auto* bits = c.raw<uint8_t>(i.temp[kMask]);
    uint32_t stream = 0;
    for (const LinearSegment& seg : s_.segments)
      if (const Adapter* a = adapter(c, seg); a != nullptr) stream = a->mask_stream;
    c.masks->fill(stream, c.tokens(), mask_bytes(), s_.dropout, bits);
    const MatOut out = c.out(i.temp[kMasked]);
    apply(c, x, bits, out);
    return {out.data, out.ld, out.elem};
  }
  void apply(RunContext& c, const Mat& x, const uint8_t* bits, const MatOut& out) const {
    const float keep = 1.0f / (1.0f - s_.dropout);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::apply_mask(x, bits, mask_bytes(), keep, s_.k, out, r0, r1);
    });
  }

  // X as the weight gradients read it: FP8 codes of its bf16 value, or itself.
  Mat saved_input(RunContext& c, const Instruction& i) const {
    Mat x = c.mat(i.in[0]);
    if (quantizes()) x = input_codes(c, i, no_image(), !computes());
    if (s_.dropout <= 0) return x;
    if (quantizes()) x = decoded(c, i, x);
    return masked(c, i, x);
  }
  // The codes' values as bf16 (exact), into the buffer that the mask is then applied to in place.
  Mat decoded(RunContext& c, const Instruction& i, const Mat& codes) const {
    const MatOut out = c.out(i.temp[kMasked]);
    run_rows(c.pool, c.tokens(),
             [&](int64_t r0, int64_t r1) { kernels::dequantize_rows(codes, s_.k, out, r0, r1); });
    return {out.data, out.ld, out.elem};
  }
  Mat input_codes(RunContext& c, const Instruction& i, const MatOut& image, bool count) const {
    return round_to_fp8(c, s_.input, c.mat(i.in[0]), c.raw<uint8_t>(i.temp[kCodes]),
                        c.raw<int8_t>(i.temp[kExps]), image, count);
  }
  // Each dY becomes its FP8 codes, or their values. Their source is its bf16 value, also where dY
  // is the fp32 gradient of the residual stream inside a block.
  void round_gradients(RunContext& c, const Instruction& i, std::vector<Mat>* dy) const {
    int64_t col = 0, block = 0;
    for (size_t s = 0; s < s_.segments.size(); ++s) {
      const MatOut image = native_ ? no_image() : columns(c.out(i.temp[kDyImage]), col);
      Mat& source = (*dy)[s];
      if (source.elem != image.elem) {
        const MatOut narrow = c.out(i.temp[kDySource]);
        run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
          for (int64_t r = r0; r < r1; ++r)
            kernels::cast(row(source, r), source.elem,
                          static_cast<uint8_t*>(narrow.data) + r * narrow.ld * 2, narrow.elem,
                          s_.segments[s].n, true);
        });
        source = {narrow.data, narrow.ld, narrow.elem};
      }
      // Codes that are read later stand one segment after another.
      const int64_t codes_at = native_ ? c.tokens() * col : 0,
                    exps_at = native_ ? c.tokens() * block : 0;
      const Mat codes = round_to_fp8(c, s_.segments[s].gradient, source,
                                     c.raw<uint8_t>(i.temp[kDyCodes]) + codes_at,
                                     c.raw<int8_t>(i.temp[kDyExps]) + exps_at, image, true);
      source = native_ ? codes : Mat{image.data, image.ld, image.elem};
      col += s_.segments[s].n;
      block += s_.segments[s].gradient.exps_ld();
    }
  }
  static const void* row(const Mat& m, int64_t r) {
    return static_cast<const uint8_t*>(m.data) + r * m.ld * kernels::elem_bytes(m.elem);
  }

  // dH_s = dY_s (scale B_s) and dB_s^T = scale H_s^T dY_s.
  void adapter_gradients_of_output(RunContext& c, const Instruction& i) const {
    Timed timed(c, &Profile::adapter_gemm);
    int64_t rank0 = 0;
    for (size_t s = 0; s < s_.segments.size(); ++s) {
      const Adapter* a = adapter(c, s_.segments[s]);
      if (a == nullptr) continue;
      const Mat dy = c.mat(i.d_out[s]);
      const GemmTerm down =
          plain_term(dy, false, {a->scaled_b_t.as<float>(), a->n, Elem::kF32}, true, a->n);
      run_gemm(c.pool, {c.tokens(), a->rank, &down, 1, columns(c.out(i.temp[kDh]), rank0), false,
                        nullptr, s_.precision});
      const GemmTerm grad =
          plain_term(columns(c.mat(i.aux[0]), rank0), true, dy, false, c.tokens());
      float* out = gradient(c, a->b_t);
      run_gemm(c.pool,
               {a->rank, a->n, &grad, 1, {out, a->n, Elem::kF32}, false, nullptr, s_.precision});
      kernels::scale(out, a->scale, a->rank * a->n);
      rank0 += a->rank;
    }
  }

  // A bias is a weight whose input is 1: the same product as dW, so the same order of sums.
  void bias_gradients(RunContext& c, const Instruction& i) const {
    Timed timed(c, &Profile::gemm);
    auto* ones = c.raw<float>(i.temp[kOnes]);
    std::fill_n(ones, c.tokens(), 1.0f);
    for (size_t s = 0; s < s_.segments.size(); ++s) {
      const LinearSegment& seg = s_.segments[s];
      if (seg.bias_trainable < 0) continue;
      const GemmTerm term =
          plain_term({ones, c.tokens(), Elem::kF32}, false, c.mat(i.d_out[s]), false, c.tokens());
      const MatOut out{gradient(c, seg.bias_trainable), seg.n, Elem::kF32};
      run_gemm(c.pool, {1, seg.n, &term, 1, out, false, nullptr, s_.precision});
    }
  }

  void input_gradient(RunContext& c, const Instruction& i, const std::vector<Mat>& dy) const {
    std::vector<GemmTerm> terms;
    for (size_t s = 0; s < s_.segments.size(); ++s)
      terms.push_back(weight_term(dy[s], c.params.weight(s_.segments[s].weight).packed, false));
    std::vector<GemmTerm> low;
    if (s_.total_rank > 0) {
      const Mat dh = c.mat(i.temp[kDh]);
      for_adapter_groups(c, [&](const Adapter& first, int64_t rank0, int64_t ranks) {
        low.push_back(plain_term(columns(dh, rank0), false,
                                 {c.params.master(first.a), s_.k, Elem::kF32}, false, ranks));
      });
    }
    const MatOut dx = c.out(i.d_in[0]);
    if (s_.dropout <= 0) terms.insert(terms.end(), low.begin(), low.end());
    {
      Timed timed(c, &Profile::gemm);
      run_gemm(c.pool, {c.tokens(), s_.k, terms.data(), static_cast<int>(terms.size()), dx, false,
                        nullptr, s_.precision});
    }
    if (s_.dropout <= 0 || low.empty()) return;
    // The adapters' share passes the mask: computed apart, masked, added.
    const MatOut share = c.out(i.temp[kMasked]);
    run_gemm(c.pool, {c.tokens(), s_.k, low.data(), static_cast<int>(low.size()), share, false,
                      nullptr, s_.precision});
    const Mat shared{share.data, share.ld, share.elem};
    apply(c, shared, c.raw<uint8_t>(i.temp[kMask]), share);
    run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
      kernels::add({dx.data, dx.ld, dx.elem}, shared, s_.k, dx, r0, r1);
    });
  }

  LinearSpec s_;
  bool trains_weights_ = false, trains_biases_ = false;
  bool native_ = false;  // products of codes are given the codes
};

}  // namespace

std::unique_ptr<Op> make_linear(std::string name, int block, const LinearSpec& spec) {
  return std::make_unique<Linear>(std::move(name), block, spec);
}

}  // namespace loongforge::graph
