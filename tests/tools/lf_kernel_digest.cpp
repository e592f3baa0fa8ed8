// Runs every kernel family on fixed inputs on every ISA that works here, and prints a checksum of
// the results: "family isa crc32c". Machines of different kinds must print the same checksums
// (scripts/loongarch/kernels.sh compares them). Exit 1: this machine's ISAs differ.
//
//   lf-kernel-digest              all families, all ISAs
//   lf-kernel-digest --gemm ISA   one product only, whose instructions can be counted
//
// Inputs come from integers and exact operations: no library function that could differ.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/checksum.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/optim.h"
#include "kernels/quant.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"

namespace loongforge::kernels {
namespace {

struct Random {
  uint64_t state;
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
  }
};

// Values in (-1, 1), a zero and a very small one here and there.
std::vector<float> values(size_t n, uint64_t seed) {
  Random random{seed};
  std::vector<float> x(n);
  for (float& v : x) {
    const auto u = static_cast<int32_t>(random.next() & 0xFFFFFFu) - 0x800000;
    v = static_cast<float>(u) * 0x1p-23f;
    const uint32_t kind = random.next() % 32;
    if (kind == 0) v = 0.0f;
    if (kind == 1) v *= 0x1p-56f;
    if (kind < 6) v *= 0x1p-6f;
  }
  return x;
}
std::vector<Bf16> halves(size_t n, uint64_t seed) {
  const std::vector<float> x = values(n, seed);
  std::vector<Bf16> y(n);
  for (size_t i = 0; i < n; ++i) {
    uint32_t u;
    std::memcpy(&u, &x[i], 4);
    y[i].bits = round_operand(u);
  }
  return y;
}
std::vector<uint8_t> bytes(size_t n, uint64_t seed) {
  Random random{seed};
  std::vector<uint8_t> x(n);
  for (uint8_t& v : x) v = static_cast<uint8_t>(random.next());
  return x;
}

// The checksum of everything that it is given.
class Digest {
 public:
  template <class T>
  void take(const std::vector<T>& x) {
    add(x.data(), x.size() * sizeof(T));
  }
  template <class T>
  void take_value(const T& x) {
    add(&x, sizeof x);
  }
  uint32_t value() const { return crc_; }

 private:
  void add(const void* p, size_t n) { crc_ = crc32c({static_cast<const uint8_t*>(p), n}, crc_); }
  uint32_t crc_ = 0;
};

constexpr int64_t kRows = 37, kCols = 333;  // odd on purpose
constexpr size_t kElems = kRows * kCols;

void digest_quant(Digest* d) {
  const std::vector<float> x = values(kElems, 1);
  const std::vector<Bf16> x16 = halves(kElems, 2);
  constexpr int64_t kBlocks = (kCols + 127) / 128;
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    std::vector<uint8_t> codes(kElems);
    std::vector<int8_t> exps(kRows * kBlocks);
    std::vector<float> back(kElems);
    QuantCounts counts;
    fp8_encode(fp8, x.data(), kElems, codes.data(), &counts);
    fp8_decode(fp8, codes.data(), kElems, back.data());
    d->take(codes);
    d->take(back);
    for (const Mat& m : {Mat{x.data(), kCols, Elem::kF32}, Mat{x16.data(), kCols, Elem::kBf16}}) {
      quantize_rows(fp8, m, kCols, 1.0f, codes.data(), kCols, exps.data(), kBlocks, &counts, 0,
                    kRows);
      d->take(codes);
      d->take(exps);
      const Mat stored{codes.data(), kCols, fp8, exps.data(), kBlocks};
      dequantize_rows(stored, kCols, {back.data(), kCols, Elem::kF32}, 0, kRows);
      d->take(back);
      QuantError error;
      quant_error(m, stored, kCols, 0, kRows, &error);
      d->take_value(error);
      quantize_weight(fp8, m, kRows, kCols, 1.0f, codes.data(), kCols, exps.data(), &counts, 0,
                      kRows);
      d->take(codes);
      d->take_value(amax_rows(m, kCols, 0, kRows));
    }
    d->take_value(counts.zero);
  }
  std::vector<uint8_t> nf4(kRows * ((kCols + 1) / 2));
  std::vector<float> absmax(kRows * ((kCols + 63) / 64));
  quantize_nf4({x.data(), kCols, Elem::kF32}, kCols, nf4.data(), (kCols + 1) / 2, absmax.data(),
               (kCols + 63) / 64, 0, kRows);
  d->take(nf4);
  d->take(absmax);
  std::vector<Bf16> y16(kElems);
  cast(x.data(), Elem::kF32, y16.data(), Elem::kBf16, kElems, true);
  d->take(y16);
}

void digest_rows(Digest* d) {
  const std::vector<float> x = values(kElems, 3), dy = values(kElems, 4);
  const std::vector<float> weight = values(kCols, 5);
  std::vector<Bf16> y(kElems);
  std::vector<float> rstd(kRows), dx(kElems), other(kElems), blocks(kCols);
  const Mat in{x.data(), kCols, Elem::kF32}, grad{dy.data(), kCols, Elem::kF32};
  const MatOut out{dx.data(), kCols, Elem::kF32}, second{other.data(), kCols, Elem::kF32};
  rms_norm_forward(in, weight.data(), 1e-5f, kCols, {y.data(), kCols, Elem::kBf16}, rstd.data(), 0,
                   kRows);
  d->take(y);
  d->take(rstd);
  rms_norm_backward(grad, in, weight.data(), rstd.data(), kCols, grad, out, blocks.data(), 0,
                    kRows);
  d->take(dx);
  d->take(blocks);
  swiglu_forward(in, grad, kCols, {y.data(), kCols, Elem::kBf16}, 0, kRows);
  d->take(y);
  swiglu_backward(grad, in, grad, kCols, out, second, 0, kRows);
  d->take(dx);
  d->take(other);
  std::vector<int32_t> positions(kRows);
  for (int32_t i = 0; i < kRows; ++i) positions[static_cast<size_t>(i)] = (i * 7) % kRows;
  const std::vector<float> cos = values(kRows * 32, 6), sin = values(kRows * 32, 7);
  rope(in, out, 5, 64, positions.data(), cos.data(), sin.data(), true, 0, kRows);
  d->take(dx);
  const std::vector<uint8_t> mask = bytes(kRows * ((kCols + 7) / 8), 8);
  apply_mask(in, mask.data(), (kCols + 7) / 8, 1.25f, kCols, out, 0, kRows);
  d->take(dx);
}

void digest_loss(Digest* d) {
  std::vector<float> logits = values(kElems, 9);
  for (float& v : logits) v *= 20.0f;
  std::vector<int32_t> targets(kRows);
  for (int32_t i = 0; i < kRows; ++i) targets[static_cast<size_t>(i)] = (i * 31) % kCols - 1;
  std::vector<float> loss(kRows), gradient(kElems);
  softmax_xent(logits.data(), kCols, kCols, targets.data(), loss.data(),
               {gradient.data(), kCols, Elem::kF32}, 0, kRows);
  d->take(loss);
  d->take(gradient);
  d->take_value(argmax(logits.data(), kElems));
}

void digest_optim(Digest* d) {
  const std::vector<float> grad = values(kElems, 10);
  std::vector<float> p = values(kElems, 11), m(kElems), v(kElems);
  const AdamW h{1e-3, 0.9, 0.999, 1e-8, 0.1, 0.5, 1 - 0.9, 0.03162277660168379};
  adamw(h, p.data(), m.data(), v.data(), grad.data(), kElems);
  d->take(p);
  d->take(m);
  d->take(v);
  std::vector<uint8_t> m8(kElems), v8(kElems);
  std::vector<int8_t> m_exps((kElems + 127) / 128), v_exps(m_exps.size());
  std::vector<uint16_t> draws(kElems);
  Random random{12};
  for (uint16_t& x : draws) x = static_cast<uint16_t>(random.next());
  const AdamWArrays arrays{p.data(),      Elem::kF32,    m8.data(),    v8.data(),   Elem::kE4M3,
                           m_exps.data(), v_exps.data(), draws.data(), draws.data()};
  for (int step = 0; step < 2; ++step) adamw_narrow(h, arrays, grad.data(), kElems);
  d->take(p);
  d->take(m8);
  d->take(v8);
  d->take(v_exps);
  d->take_value(sum_squares(grad.data(), kElems));
  d->take_value(sum(grad.data(), kElems));
}

void digest_reduce(Digest* d) {
  std::vector<float> sum = values(kElems, 13);
  const std::vector<Bf16> x = halves(kElems, 14);
  std::vector<Bf16> both(kElems);
  reduce_into(sum.data(), x.data(), Elem::kBf16, kElems);
  reduce_two(sum.data(), Elem::kF32, x.data(), Elem::kBf16, both.data(), Elem::kBf16, kElems);
  std::vector<uint64_t> words(static_cast<size_t>(words_of_codes(kElems)));
  std::vector<int8_t> exps((kElems + 127) / 128);
  pack_fp8(Elem::kE4M3, sum.data(), Elem::kF32, kElems, 1.0f, words.data(), exps.data(), nullptr);
  unpack_fp8(Elem::kE4M3, words.data(), exps.data(), kElems, sum.data(), true);
  sum[100] = HUGE_VALF;
  d->take(words);
  d->take(exps);
  d->take(sum);
  d->take(both);
  d->take_value(find_non_finite(sum.data(), Elem::kF32, kElems).first);
}

// ---- A packed weight [n, k] of any element.
struct Weight {
  AlignedBuffer data;
  std::vector<int8_t> exps;
  PackedWeight w;

  Weight(Elem elem, int64_t n, int64_t k) : data(packed_weight_bytes(elem, n, k)) {
    const auto count = static_cast<size_t>(n * k);
    exps.assign(static_cast<size_t>((n + 127) / 128 * ((k + 127) / 128)), -2);
    w = {data.data(), elem_bytes_of(elem) == 1 ? exps.data() : nullptr, n, k, elem};
    if (elem == Elem::kF32) {
      const std::vector<float> x = values(count, 15);
      pack_weight_rows(w, x.data(), k, 0, n);
    } else if (elem == Elem::kBf16) {
      const std::vector<Bf16> x = halves(count, 16);
      pack_weight_rows(w, x.data(), k, 0, n);
    } else if (elem == Elem::kNf4) {
      const std::vector<uint8_t> codes = bytes(static_cast<size_t>(n * ((k + 1) / 2)), 17);
      std::vector<float> absmax = values(static_cast<size_t>(n * ((k + 63) / 64)), 18);
      pack_nf4_rows(w, codes.data(), (k + 1) / 2, absmax.data(), (k + 63) / 64, 0, n);
    } else {
      std::vector<uint8_t> codes = bytes(count, 19);
      for (uint8_t& c : codes) c &= 0xBFu;  // no NaN, no infinity
      pack_weight_rows(w, codes.data(), k, 0, n);
    }
  }
  static int elem_bytes_of(Elem elem) { return elem == Elem::kNf4 ? 0 : elem_bytes(elem); }
};

// C [m, n or k] = A W^T (forward) or A W, of bf16 or fp32 rows A.
void product(Elem elem, bool forward, Precision precision, int64_t m, int64_t n, int64_t k,
             Digest* d) {
  const Weight weight(elem, n, k);
  const int64_t inner = forward ? k : n, cols = forward ? n : k;
  const std::vector<float> a32 = values(static_cast<size_t>(m * inner), 20);
  const std::vector<Bf16> a16 = halves(a32.size(), 21);
  const Mat a = precision == Precision::kF32 ? Mat{a32.data(), inner, Elem::kF32}
                                             : Mat{a16.data(), inner, Elem::kBf16};
  const GemmTerm term{a,         false, forward ? GemmTerm::B::kWeightT : GemmTerm::B::kWeight,
                      &weight.w, {},    inner};
  std::vector<float> c(static_cast<size_t>(m * cols));
  const GemmJob job{m, cols, &term, 1, {c.data(), cols, Elem::kF32}, false, nullptr, precision};
  AlignedBuffer scratch(gemm_scratch_bytes());
  gemm(job, 0, m, 0, cols, scratch.data());
  d->take(c);
}

void digest_gemm(Digest* d) {
  for (const Precision precision : {Precision::kBf16, Precision::kF32})
    for (const Elem elem : {Elem::kF32, Elem::kBf16, Elem::kE4M3, Elem::kE5M2, Elem::kNf4})
      for (const bool forward : {true, false})
        for (const int64_t m : {3, 17}) product(elem, forward, precision, m, 70, 333, d);
  // dW: both sides plain, A transposed.
  const std::vector<Bf16> dy = halves(41 * 70, 22), x = halves(41 * 93, 23);
  const GemmTerm term{{dy.data(), 70, Elem::kBf16}, true, GemmTerm::B::kPlain, nullptr,
                      {x.data(), 93, Elem::kBf16},  41};
  std::vector<float> c(70 * 93);
  const GemmJob job{70, 93, &term, 1, {c.data(), 93, Elem::kF32}, false, nullptr, Precision::kBf16};
  AlignedBuffer scratch(gemm_scratch_bytes());
  gemm(job, 0, 70, 0, 93, scratch.data());
  d->take(c);
}

void digest_attention(Digest* d) {
  constexpr int64_t kTokens = 75, kHeads = 4, kKvHeads = 2, kDim = 40;
  constexpr size_t kQ = kTokens * kHeads * kDim, kKv = kTokens * kKvHeads * kDim;
  for (const Precision precision : {Precision::kBf16, Precision::kF32}) {
    const std::vector<float> q = values(kQ, 24), k = values(kKv, 25), v = values(kKv, 26);
    const std::vector<float> grad = values(kQ, 27);
    std::vector<float> o(kQ), lse(kHeads * kTokens), dq(kQ), dk(kKv), dv(kKv);
    constexpr int64_t kLdQ = kHeads * kDim, kLdKv = kKvHeads * kDim;
    const AttnJob job{kHeads,
                      kKvHeads,
                      kDim,
                      0.15625f,
                      0,
                      precision,
                      {q.data(), kLdQ, Elem::kF32},
                      {k.data(), kLdKv, Elem::kF32},
                      {v.data(), kLdKv, Elem::kF32},
                      {o.data(), kLdQ, Elem::kF32},
                      lse.data(),
                      kTokens,
                      {o.data(), kLdQ, Elem::kF32},
                      {grad.data(), kLdQ, Elem::kF32},
                      {dq.data(), kLdQ, Elem::kF32},
                      {dk.data(), kLdKv, Elem::kF32},
                      {dv.data(), kLdKv, Elem::kF32}};
    const AttnDoc doc{0, kTokens, 0, kTokens};
    AlignedBuffer forward(attention_scratch_bytes(job, kTokens, false));
    AlignedBuffer backward(attention_scratch_bytes(job, kTokens, true));
    for (int64_t h = 0; h < kKvHeads; ++h)
      attention_forward(job, doc, h, 0, kTokens, forward.data());
    for (int64_t h = 0; h < kKvHeads; ++h) attention_backward(job, doc, h, backward.data());
    for (const auto* x : {&o, &lse, &dq, &dk, &dv}) d->take(*x);
  }
}

struct FamilyDigest {
  const char* name;
  void (*run)(Digest* d);
};
constexpr FamilyDigest kFamilies[] = {
    {"quant", digest_quant},         {"rows", digest_rows},     {"loss", digest_loss},
    {"optim", digest_optim},         {"reduce", digest_reduce}, {"gemm", digest_gemm},
    {"attention", digest_attention},
};

int print_all() {
  bool same = true;
  for (const FamilyDigest& family : kFamilies) {
    uint32_t first = 0;
    for (const Isa isa : testable_isas()) {
      set_active_isa(isa);
      Digest d;
      family.run(&d);
      std::printf("%s %s %08x\n", family.name, isa_name(isa), d.value());
      if (isa == Isa::kScalar) first = d.value();
      same = same && d.value() == first;
    }
  }
  return same ? 0 : 1;
}

int gemm_alone(const char* name) {
  Isa isa;
  if (!parse_isa(name, &isa) || !set_active_isa(isa)) {
    std::fprintf(stderr, "lf-kernel-digest: this machine has no %s\n", name);
    return 1;
  }
  Digest d;
  product(Elem::kE4M3, true, Precision::kBf16, 96, 64, 1024, &d);
  std::printf("gemm %s %08x\n", name, d.value());
  return 0;
}

}  // namespace
}  // namespace loongforge::kernels

int main(int argc, char** argv) {
  if (argc == 1) return loongforge::kernels::print_all();
  if (argc == 3 && std::string(argv[1]) == "--gemm")
    return loongforge::kernels::gemm_alone(argv[2]);
  std::fprintf(stderr, "usage: lf-kernel-digest [--gemm ISA]\n");
  return 2;
}
