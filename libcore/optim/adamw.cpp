#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/math.h"
#include "kernels/optim.h"

namespace loongforge::optim {
namespace {

using kernels::Elem;

// Floats of a task: five streams of it stay in a core's L2 cache. Whole FP8 blocks.
constexpr int64_t kPiece = 1 << 14;
static_assert(kPiece % kernels::kFeatureBlock == 0);

int64_t blocks_of(const ParameterView& view) {
  return (view.size() + kernels::kFeatureBlock - 1) / kernels::kFeatureBlock;
}

Elem elem_of(MomentFormat format) {
  return format == MomentFormat::kF32    ? Elem::kF32
         : format == MomentFormat::kBf16 ? Elem::kBf16
                                         : Elem::kE4M3;
}

void check(const char* name, double value, bool good, const char* allowed) {
  if (!good)
    throw_usage(std::string(name) + " is " + std::to_string(value),
                std::string("it must be ") + allowed);
}

AlignedBuffer zeros(size_t bytes) {
  AlignedBuffer buffer(bytes, Pages::kTransparent);
  // A small buffer is undefined; a large one is zero, and stays untouched until it is used.
  if (bytes != 0 && bytes < kMmapBytes) std::memset(buffer.data(), 0, bytes);
  return buffer;
}

}  // namespace

std::string_view moment_format_name(MomentFormat format) noexcept {
  return format == MomentFormat::kF32 ? "fp32" : format == MomentFormat::kBf16 ? "bf16" : "fp8";
}

std::optional<MomentFormat> parse_moment_format(std::string_view text) noexcept {
  for (const MomentFormat each : {MomentFormat::kF32, MomentFormat::kBf16, MomentFormat::kFp8})
    if (text == moment_format_name(each)) return each;
  return std::nullopt;
}

AdamW::AdamW(std::vector<ParameterView> views, const AdamWOptions& options)
    : views_(std::move(views)), options_(options) {
  check("adam_beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1,
        "at least 0 and below 1");
  check("adam_beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1,
        "at least 0 and below 1");
  check("adam_epsilon", options.eps, options.eps >= 0 && std::isfinite(options.eps), "0 or more");
  check("weight_decay", options.weight_decay,
        options.weight_decay >= 0 && std::isfinite(options.weight_decay), "0 or more");
  const auto floats = static_cast<size_t>(buffer_floats(views_));
  const size_t bytes = floats * static_cast<size_t>(kernels::elem_bytes(moment_elem()));
  first_ = zeros(bytes);
  second_ = zeros(bytes);
  int64_t blocks = 0;
  for (size_t v = 0; v < views_.size(); ++v) {
    exponents_at_.push_back(blocks);
    blocks += blocks_of(views_[v]);
    for (int64_t at = 0; at < views_[v].size(); at += kPiece)
      pieces_.push_back({v, at, std::min(kPiece, views_[v].size() - at)});
  }
  if (options_.moments != MomentFormat::kFp8) return;
  first_exponents_.assign(static_cast<size_t>(blocks), 0);
  second_exponents_.assign(static_cast<size_t>(blocks), 0);
}

Elem AdamW::moment_elem() const noexcept { return elem_of(options_.moments); }

// What the kernel works on, from element `begin` of a view on.
kernels::AdamWArrays AdamW::arrays_of(const Masters& masters, size_t view, int64_t begin) {
  const ParameterView& p = views_[view];
  const Elem elem = moment_elem();
  const int64_t at = (p.offset + begin) * kernels::elem_bytes(elem);
  kernels::AdamWArrays a{};
  a.param_elem = p.master;
  a.param = p.master == Elem::kF32 ? static_cast<void*>(masters.f32 + p.master_at() + begin)
                                   : static_cast<void*>(masters.bf16 + p.master_at() + begin);
  a.moments = elem;
  a.m = first_.data() + at;
  a.v = second_.data() + at;
  if (elem == Elem::kE4M3) {
    const int64_t block = exponents_at_[view] + begin / kernels::kFeatureBlock;
    a.m_exps = first_exponents_.data() + block;
    a.v_exps = second_exponents_.data() + block;
  }
  return a;
}

void AdamW::step(const Masters& masters, const float* gradients, double lr, double grad_scale,
                 ThreadPool& pool) {
  ++steps_;
  kernels::AdamW h{};
  h.lr = static_cast<float>(lr);
  h.beta1 = static_cast<float>(options_.beta1);
  h.beta2 = static_cast<float>(options_.beta2);
  h.eps = static_cast<float>(options_.eps);
  h.grad_scale = static_cast<float>(grad_scale);
  // The correction is that of the rounded betas that the kernel uses: 1 - 0.999f is 1.3e-5 away
  // from 0.001.
  auto t = static_cast<double>(steps_);
  auto correction = [t](float beta) {
    return beta == 0 ? 1.0 : 1.0 - kernels::det_pow(double{beta}, t);
  };
  h.bias1 = static_cast<float>(correction(h.beta1));
  h.sqrt_bias2 = static_cast<float>(std::sqrt(correction(h.beta2)));
  kernels::AdamW plain = h;
  h.weight_decay = static_cast<float>(options_.weight_decay);
  // Draws of a piece: for the parameters, then for the moments.
  if (options_.rounding != nullptr) pool.reserve_scratch(2 * kPiece * sizeof(uint16_t));
  pool.run(static_cast<int64_t>(pieces_.size()), [&](int64_t task, int worker) {
    const Piece& piece = pieces_[static_cast<size_t>(task)];
    const ParameterView& view = views_[piece.view];
    kernels::AdamWArrays a = arrays_of(masters, piece.view, piece.begin);
    const kernels::AdamW& constants = view.decay ? h : plain;
    const float* gradient = gradients + view.offset + piece.begin;
    if (a.param_elem == Elem::kF32 && a.moments == Elem::kF32) {
      kernels::adamw(constants, static_cast<float*>(a.param), static_cast<float*>(a.m),
                     static_cast<float*>(a.v), gradient, piece.size);
      return;
    }
    auto* draws = static_cast<uint16_t*>(pool.scratch(worker));
    const auto draw = [&](uint32_t use, uint16_t* out) {
      options_.rounding->fill(static_cast<uint32_t>(2 * piece.view) + use,
                              static_cast<uint64_t>(steps_), piece.begin,
                              {out, static_cast<size_t>(piece.size)}, worker);
      return out;
    };
    if (a.param_elem != Elem::kF32) a.param_draws = draw(0, draws);
    if (a.moments != Elem::kF32) a.moment_draws = draw(1, draws + kPiece);
    kernels::adamw_narrow(constants, a, gradient, piece.size);
  });
}

std::vector<StateArray> AdamW::state() {
  const tensor::DType dtype = options_.moments == MomentFormat::kF32    ? tensor::DType::kF32
                              : options_.moments == MomentFormat::kBf16 ? tensor::DType::kBF16
                                                                        : tensor::DType::kU8;
  const bool fp8 = options_.moments == MomentFormat::kFp8;
  std::vector<StateArray> arrays;
  for (size_t v = 0; v < views_.size(); ++v) {
    const ParameterView& view = views_[v];
    const auto width = static_cast<size_t>(kernels::elem_bytes(moment_elem()));
    const size_t at = static_cast<size_t>(view.offset) * width,
                 bytes = static_cast<size_t>(view.size()) * width;
    for (const bool second : {false, true}) {
      const std::string name = view.name + (!second ? ".exp_avg"
                                            : fp8   ? ".exp_avg_sq_root"
                                                    : ".exp_avg_sq");
      AlignedBuffer& buffer = second ? second_ : first_;
      arrays.push_back({name, dtype, {view.rows, view.cols}, {buffer.data() + at, bytes}});
      if (!fp8) continue;
      std::vector<int8_t>& exponents = second ? second_exponents_ : first_exponents_;
      auto* first = reinterpret_cast<uint8_t*>(exponents.data() + exponents_at_[v]);
      const int64_t blocks = blocks_of(view);
      arrays.push_back({name + ".exponents",
                        tensor::DType::kI8,
                        {blocks},
                        {first, static_cast<size_t>(blocks)}});
    }
  }
  return arrays;
}

void AdamW::set_moment(size_t view, bool second, std::span<const float> values) {
  const kernels::AdamWArrays a = arrays_of({}, view, 0);
  kernels::write_moments(values.data(), second ? a.v : a.m, second ? a.v_exps : a.m_exps, a.moments,
                         second, static_cast<int64_t>(values.size()));
}

size_t AdamW::state_bytes(const std::vector<ParameterView>& views, MomentFormat moments) {
  size_t bytes = 2 * static_cast<size_t>(buffer_floats(views)) *
                 static_cast<size_t>(kernels::elem_bytes(elem_of(moments)));
  if (moments == MomentFormat::kFp8)
    for (const ParameterView& view : views) bytes += 2 * static_cast<size_t>(blocks_of(view));
  return bytes;
}

}  // namespace loongforge::optim
