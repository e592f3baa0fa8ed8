// gemm against a plain loop that follows the rule of gemm.h literally (to the bit, on every ISA),
// and against float64.
#include "kernels/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "kernels/generic/gemm_table.h"
#include "kernels/isa.h"

namespace loongforge::kernels {

#if LF_HAVE_AVX512
namespace avx512 {
extern const GemmTable kGemmDotTable;
extern const GemmTable kGemmFmaTable;
}  // namespace avx512
#endif

namespace {

using B = GemmTerm::B;

// ---- Numbers, written from their definitions and not from the library.
float to_bf16(float x) {  // nearest even, under 2^-55 is 0
  if (std::isnan(x) || std::isinf(x)) return x;
  if (std::fabs(x) < std::ldexp(1.0f, -55)) return 0.0f;
  int e = 0;
  const double m = std::frexp(static_cast<double>(x), &e);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(m, 8)), e - 8));
}
Bf16 bf16_of(float x) {  // of a value that is a bf16
  uint32_t u = 0;
  std::memcpy(&u, &x, 4);
  return Bf16{static_cast<uint16_t>(u >> 16)};
}
float value_of(Bf16 x) {
  const uint32_t u = static_cast<uint32_t>(x.bits) << 16;
  float f = 0;
  std::memcpy(&f, &u, 4);
  return f;
}
float fp8_value(Elem fp8, uint8_t code) {
  const int mantissa_bits = fp8 == Elem::kE4M3 ? 3 : 2, bias = fp8 == Elem::kE4M3 ? 12 : 15;
  const int e = (code & 0x7F) >> mantissa_bits, m = code & ((1 << mantissa_bits) - 1);
  const double unit = std::ldexp(1.0, -mantissa_bits);
  const double x = e == 0 ? std::ldexp(m * unit, 1 - bias) : std::ldexp(1 + m * unit, e - bias);
  return static_cast<float>(code & 0x80 ? -x : x);
}

// The table of the QLoRA paper's NF4, as bitsandbytes prints it.
const float kNf4Table[16] = {-1.0f,
                             -0.6961928009986877f,
                             -0.5250730514526367f,
                             -0.39491748809814453f,
                             -0.28444138169288635f,
                             -0.18477343022823334f,
                             -0.09105003625154495f,
                             0.0f,
                             0.07958029955625534f,
                             0.16093020141124725f,
                             0.24611230194568634f,
                             0.33791524171829224f,
                             0.44070982933044434f,
                             0.5626170039176941f,
                             0.7229568362236023f,
                             1.0f};

struct Rng {
  std::mt19937 engine;
  explicit Rng(uint32_t seed) : engine(seed) {}
  int below(int n) { return static_cast<int>(engine() % static_cast<uint32_t>(n)); }
  float value() {  // around 1, some 0, some that round, some under the operand threshold
    const int kind = below(16);
    if (kind == 0) return 0.0f;
    const float x = std::ldexp(static_cast<float>(engine()) / 4294967296.0f - 0.5f, below(6) - 3);
    if (kind == 1) return std::ldexp(x, -54);
    if (kind == 2) return std::ldexp(x, -20);
    return x;
  }
};

// ---- A matrix with a margin around it, at a place that only its element type aligns.
struct Matrix {
  int64_t rows = 0, cols = 0, ld = 0;
  Elem elem = Elem::kF32;
  std::vector<uint8_t> bytes;
  std::vector<int8_t> exps;
  int64_t ld_exps = 0;

  Matrix() = default;
  Matrix(int64_t rows_, int64_t cols_, Elem elem_, Rng& rng)
      : rows(rows_), cols(cols_), ld(cols_ + rng.below(3)), elem(elem_) {
    bytes.resize(static_cast<size_t>((rows * ld + 8) * elem_bytes(elem)),
                 0xFF);  // the margin is NaN
    ld_exps = (cols + kFeatureBlock - 1) / kFeatureBlock + 1;
    exps.resize(static_cast<size_t>(rows * ld_exps), 77);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) set(i, j, rng);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t b = 0; b < ld_exps - 1; ++b)
        exps[static_cast<size_t>(i * ld_exps + b)] = random_exp(rng);
  }
  static int8_t random_exp(Rng& rng) {
    return static_cast<int8_t>(rng.below(12) == 0 ? -41 + rng.below(4) : rng.below(12) - 8);
  }
  uint8_t* at(int64_t i,
              int64_t j) {  // one element past the start, so that nothing is aligned to more
    return bytes.data() + (i * ld + j + 1) * elem_bytes(elem);
  }
  const uint8_t* at(int64_t i, int64_t j) const { return const_cast<Matrix*>(this)->at(i, j); }
  void set(int64_t i, int64_t j, Rng& rng) {
    const float x = rng.value();
    if (elem == Elem::kF32) {
      std::memcpy(at(i, j), &x, 4);
    } else if (elem == Elem::kBf16) {
      const Bf16 b = bf16_of(x);  // cut off, so that values under 2^-55 stay
      std::memcpy(at(i, j), &b, 2);
    } else {
      const int limit = elem == Elem::kE4M3 ? 0x7F : 0x7C;
      *at(i, j) = static_cast<uint8_t>(rng.below(limit) | rng.below(2) << 7);
    }
  }
  float stored(int64_t i, int64_t j) const {
    float x = 0;
    if (elem == Elem::kF32) {
      std::memcpy(&x, at(i, j), 4);
    } else if (elem == Elem::kBf16) {
      Bf16 b;
      std::memcpy(&b, at(i, j), 2);
      x = value_of(b);
    } else {
      x = fp8_value(elem, *at(i, j));
    }
    return x;
  }
  float get(int64_t i, int64_t j) const {
    const float x = stored(i, j);
    if (elem == Elem::kF32 || elem == Elem::kBf16) return x;
    return std::ldexp(x, exps[static_cast<size_t>(i * ld_exps + j / kFeatureBlock)]);
  }
  Mat view() const { return Mat{at(0, 0), ld, elem, exps.data(), ld_exps}; }
};

struct Weight {
  Matrix source;  // [n, k]; NF4: a byte's low half is the code
  Elem elem;
  std::vector<int8_t> exps;
  std::vector<float> absmax;  // NF4: [n][ceil(k / 64) + 1]
  Weight(int64_t n, int64_t k, Elem elem_, Rng& rng)
      : source(n, k, elem_ == Elem::kNf4 ? Elem::kE4M3 : elem_, rng), elem(elem_) {
    exps.resize(static_cast<size_t>((n + 127) / 128 * ((k + 127) / 128)));
    for (int8_t& e : exps) e = Matrix::random_exp(rng);
    for (int64_t i = 0; i < n * ld_absmax(); ++i) absmax.push_back(random_absmax(rng));
  }
  int64_t ld_absmax() const { return (source.cols + 63) / 64 + 1; }
  // Mostly ordinary; zero, negative (double quantisation brings it), around the operand threshold,
  // subnormal.
  static float random_absmax(Rng& rng) {
    const float x = std::fabs(rng.value()) + 0.01f;
    const int kind = rng.below(40);
    if (kind == 0) return 0.0f;
    if (kind == 1) return -x;
    if (kind == 2) return std::ldexp(x, -53);
    if (kind == 3) return std::ldexp(x, -130);
    return x;
  }
  float get(int64_t i, int64_t j) const {
    if (elem == Elem::kNf4)
      return kNf4Table[*source.at(i, j) & 15] *
             absmax[static_cast<size_t>(i * ld_absmax() + j / 64)];
    const float x = source.stored(i, j);
    if (source.elem == Elem::kF32) return x;
    if (source.elem == Elem::kBf16) return std::fabs(x) < std::ldexp(1.0f, -55) ? 0.0f : x;
    return std::ldexp(x,
                      exps[static_cast<size_t>(i / 128 * ((source.cols + 127) / 128) + j / 128)]);
  }
};

struct Packed {
  AlignedBuffer buffer;
  PackedWeight w;
  Packed(const GemmTable& table, const Weight& from) {
    const Matrix& s = from.source;
    buffer = AlignedBuffer(table.packed_weight_bytes(from.elem, s.rows, s.cols));
    if (buffer.size() > 0) std::memset(buffer.data(), 0xFF, buffer.size());
    w = PackedWeight{buffer.data(), const_cast<int8_t*>(from.exps.data()), s.rows, s.cols,
                     from.elem};
    // In two calls, cut where the contract allows it.
    const int64_t cut = s.rows > 64 ? 64 : 0;
    if (from.elem == Elem::kNf4) {
      // Two codes a byte, the first in the high half; what follows a last odd one is noise.
      const int64_t ld = (s.cols + 1) / 2 + 1;
      std::vector<uint8_t> codes(static_cast<size_t>(s.rows * ld), 0xAA);
      for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t j = 0; j < s.cols; ++j) {
          uint8_t& both = codes[static_cast<size_t>(i * ld + j / 2)];
          const int code = *s.at(i, j) & 15;
          both =
              static_cast<uint8_t>(j % 2 == 0 ? (both & 0x0F) | code << 4 : (both & 0xF0) | code);
        }
      const int64_t ld_absmax = from.ld_absmax();
      if (cut > 0) table.pack_nf4_rows(w, codes.data(), ld, from.absmax.data(), ld_absmax, 0, cut);
      table.pack_nf4_rows(w, codes.data() + cut * ld, ld, from.absmax.data() + cut * ld_absmax,
                          ld_absmax, cut, s.rows);
      return;
    }
    if (cut > 0) table.pack_weight_rows(w, s.at(0, 0), s.ld, 0, cut);
    table.pack_weight_rows(w, s.at(cut, 0), s.ld, cut, s.rows);
  }
};

struct TermSpec {
  Elem a;
  bool a_transposed;
  B kind;
  Elem b;
  int64_t k;
};
struct Spec {
  int64_t m, n;
  std::vector<TermSpec> terms;
  Elem c = Elem::kF32;
  bool accumulate = false, bias = false;
  Precision precision = Precision::kBf16;
};

struct Problem {
  Spec spec;
  std::vector<Matrix> a, b;
  std::vector<Weight> w;
  std::vector<float> bias, c_before;

  Problem(const Spec& s, Rng& rng) : spec(s) {
    for (const TermSpec& t : s.terms) {
      a.emplace_back(t.a_transposed ? t.k : s.m, t.a_transposed ? s.m : t.k, t.a, rng);
      const bool weight = t.kind == B::kWeightT || t.kind == B::kWeight;
      const bool n_first = t.kind == B::kWeightT || t.kind == B::kPlainT;
      const int64_t rows = n_first ? s.n : t.k, cols = n_first ? t.k : s.n;
      w.emplace_back(weight ? rows : 0, weight ? cols : 0, t.b, rng);
      b.emplace_back(weight ? 0 : rows, weight ? 0 : cols, weight ? Elem::kF32 : t.b, rng);
    }
    for (int64_t j = 0; j < s.n; ++j) bias.push_back(rng.value());
    for (int64_t i = 0; i < s.m * s.n; ++i) c_before.push_back(std::ldexp(rng.value() + 1.0f, 1));
  }

  float operand(float x) const { return spec.precision == Precision::kBf16 ? to_bf16(x) : x; }
  float a_value(size_t t, int64_t i, int64_t kk) const {
    return operand(spec.terms[t].a_transposed ? a[t].get(kk, i) : a[t].get(i, kk));
  }
  float b_value(size_t t, int64_t kk, int64_t j) const {
    switch (spec.terms[t].kind) {
      case B::kWeightT:
        return operand(w[t].get(j, kk));
      case B::kWeight:
        return operand(w[t].get(kk, j));
      case B::kPlain:
        return operand(b[t].get(kk, j));
      default:
        return operand(b[t].get(j, kk));
    }
  }

  // The rule of gemm.h; exact: the sum in float64 and the sum of magnitudes, for the bound.
  struct Result {
    std::vector<float> c;
    std::vector<double> exact, magnitude;
  };
  Result reference() const {
    Result r;
    const int64_t m = spec.m, n = spec.n;
    std::vector<float> sum(static_cast<size_t>(m * n), 0.0f);
    if (spec.accumulate) sum = c_before;
    r.exact.assign(sum.begin(), sum.end());
    for (double x : r.exact) r.magnitude.push_back(std::fabs(x));
    for (size_t t = 0; t < spec.terms.size(); ++t) {
      const int64_t k = spec.terms[t].k;
      std::vector<float> av(static_cast<size_t>(m * (k + 1)), 0.0f),
          bv(static_cast<size_t>((k + 1) * n), 0.0f);
      for (int64_t kk = 0; kk < k; ++kk) {
        for (int64_t i = 0; i < m; ++i) av[static_cast<size_t>(kk * m + i)] = a_value(t, i, kk);
        for (int64_t j = 0; j < n; ++j) bv[static_cast<size_t>(kk * n + j)] = b_value(t, kk, j);
      }
      for (int64_t pair = 0; pair < k; pair += 2) {
        for (int64_t kk : {pair + 1, pair}) {
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              const float x = av[static_cast<size_t>(kk * m + i)],
                          y = bv[static_cast<size_t>(kk * n + j)];
              const auto at = static_cast<size_t>(i * n + j);
              sum[at] = std::fmaf(x, y, sum[at]);
              r.exact[at] += static_cast<double>(x) * y;
              r.magnitude[at] += std::fabs(static_cast<double>(x) * y);
            }
          }
        }
      }
    }
    for (int64_t i = 0; i < m * n; ++i) {
      float x = sum[static_cast<size_t>(i)];
      if (spec.bias) x += bias[static_cast<size_t>(i % n)];
      if (spec.bias) r.exact[static_cast<size_t>(i)] += bias[static_cast<size_t>(i % n)];
      r.c.push_back(spec.c == Elem::kBf16 ? to_bf16(x) : x);
    }
    return r;
  }

  struct Cut {
    int64_t m0, m1, n0, n1;
  };
  std::vector<float> run(const GemmTable& table, const std::vector<Cut>& cuts) const {
    std::vector<Packed> packed;
    for (const Weight& x : w) packed.emplace_back(table, x);
    std::vector<GemmTerm> terms;
    for (size_t t = 0; t < spec.terms.size(); ++t)
      terms.push_back({a[t].view(), spec.terms[t].a_transposed, spec.terms[t].kind, &packed[t].w,
                       b[t].view(), spec.terms[t].k});
    Rng rng(1);
    Matrix c(spec.m, spec.n, spec.c, rng);
    for (int64_t i = 0; i < spec.m && spec.accumulate; ++i)
      for (int64_t j = 0; j < spec.n; ++j)
        std::memcpy(c.at(i, j), &c_before[static_cast<size_t>(i * spec.n + j)], 4);
    const Matrix before = c;
    AlignedBuffer scratch(table.scratch_bytes());
    std::memset(scratch.data(), 0xFF,
                scratch.size());  // NaN: nothing may be read before it is written
    const GemmJob job{spec.m,
                      spec.n,
                      terms.data(),
                      static_cast<int>(terms.size()),
                      MatOut{c.at(0, 0), c.ld, spec.c},
                      spec.accumulate,
                      spec.bias ? bias.data() : nullptr,
                      spec.precision};
    for (const Cut& cut : cuts) table.gemm(job, cut.m0, cut.m1, cut.n0, cut.n1, scratch.data());
    std::vector<float> out;
    std::vector<bool> ours(c.bytes.size(), false);
    for (int64_t i = 0; i < spec.m; ++i) {
      for (int64_t j = 0; j < spec.n; ++j) {
        out.push_back(c.stored(i, j));
        for (int byte = 0; byte < elem_bytes(spec.c); ++byte)
          ours[static_cast<size_t>(c.at(i, j) - c.bytes.data() + byte)] = true;
      }
    }
    size_t outside = 0;
    for (size_t i = 0; i < c.bytes.size(); ++i)
      outside += !ours[i] && c.bytes[i] != before.bytes[i];
    CHECK_MESSAGE(outside == 0, "bytes outside of C were written");
    return out;
  }
  std::vector<Cut> whole() const { return {{0, spec.m, 0, spec.n}}; }
  std::vector<Cut> random_cuts(Rng& rng) const {
    std::vector<int64_t> rows{0, spec.m}, cols{0, spec.n};
    if (spec.m > 1) rows.insert(rows.begin() + 1, 1 + rng.below(static_cast<int>(spec.m - 1)));
    if (spec.n > 1) cols.insert(cols.begin() + 1, 1 + rng.below(static_cast<int>(spec.n - 1)));
    std::vector<Cut> cuts;
    for (size_t i = 1; i < rows.size(); ++i)
      for (size_t j = 1; j < cols.size(); ++j)
        cuts.push_back({rows[i - 1], rows[i], cols[j - 1], cols[j]});
    return cuts;
  }
};

struct Variant {
  std::string name;
  GemmTable table;
};
// Every ISA that can run here, through the public functions, and AVX-512 in both its ways.
template <class F>
void for_each_variant(F f) {
  const Isa before = active_isa();
  for (const Isa isa : testable_isas()) {
    REQUIRE(set_active_isa(isa));
    const GemmTable active{packed_weight_bytes, pack_weight_rows, pack_nf4_rows, gather_weight_rows,
                           gemm_scratch_bytes,  gemm_steps,       gemm};
    const std::string name =
        std::string(isa_name(isa)) + (isa_is_emulated(isa) ? " (emulated)" : "");
    f(Variant{name, active});
#if LF_HAVE_AVX512
    if (isa != Isa::kAvx512) continue;
    f(Variant{name + " vdpbf16ps", avx512::kGemmDotTable});
    f(Variant{name + " fma", avx512::kGemmFmaTable});
#endif
  }
  set_active_isa(before);
}

std::string describe(const Spec& s) {
  std::string text = "m " + std::to_string(s.m) + " n " + std::to_string(s.n) + " c " +
                     std::to_string(static_cast<int>(s.c)) + (s.accumulate ? " accumulate" : "") +
                     (s.bias ? " bias" : "") +
                     (s.precision == Precision::kBf16 ? " bf16:" : " f32:");
  for (const TermSpec& t : s.terms)
    text += " [a " + std::to_string(static_cast<int>(t.a)) + (t.a_transposed ? "t" : "") +
            " b kind " + std::to_string(static_cast<int>(t.kind)) + " elem " +
            std::to_string(static_cast<int>(t.b)) + " k " + std::to_string(t.k) + "]";
  return text;
}

bool same(float x, float y) { return std::memcmp(&x, &y, 4) == 0; }

void check(const Spec& spec, uint32_t seed) {
  Rng rng(seed);
  const Problem p(spec, rng);
  const Problem::Result want = p.reference();
  const auto cuts = p.random_cuts(rng);
  for_each_variant([&](const Variant& v) {
    for (const auto& how : {p.whole(), cuts}) {
      const std::vector<float> got = p.run(v.table, how);
      size_t different = 0, first = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        if (same(got[i], want.c[i])) continue;
        if (different++ == 0) first = i;
      }
      CHECK_MESSAGE(different == 0, v.name << ", " << describe(spec) << ", " << how.size()
                                           << " pieces: " << different << " of " << got.size()
                                           << " differ, first at " << first << ": " << got[first]
                                           << " for " << want.c[first]);
    }
  });
  // The plain loop itself: within the usual bound of a recursive fp32 sum.
  double k = 1;
  for (const TermSpec& t : spec.terms) k += static_cast<double>(t.k);
  size_t wrong = 0;
  for (size_t i = 0; i < want.c.size(); ++i) {
    double bound =
        1e-30 + (k + 1) * std::ldexp(1.0, -24) * (want.magnitude[i] + std::fabs(want.exact[i]));
    if (spec.c == Elem::kBf16)
      bound += std::ldexp(1.0, -8) * (std::fabs(want.exact[i]) + bound) + std::ldexp(1.0, -55);
    wrong += !(std::fabs(want.c[i] - want.exact[i]) <= bound);
  }
  CHECK_MESSAGE(wrong == 0, describe(spec) << ": " << wrong << " results beyond the float64 bound");
}

const std::vector<Elem> kAll = {Elem::kF32, Elem::kBf16, Elem::kE4M3, Elem::kE5M2};

TEST_CASE("gemm: every kind of B, element type and precision gives the bits of the plain loop") {
  uint32_t seed = 100;
  for (const Precision precision : {Precision::kBf16, Precision::kF32}) {
    for (const B kind : {B::kWeightT, B::kWeight, B::kPlain, B::kPlainT}) {
      for (const Elem b : kAll) {
        if (kind == B::kPlainT && (b == Elem::kE4M3 || b == Elem::kE5M2)) continue;
        for (const Elem a : {Elem::kF32, Elem::kBf16}) {
          for (const bool transposed : {false, true}) {
            Spec s{7, 150, {{a, transposed, kind, b, 143}}};
            s.precision = precision;
            check(s, ++seed);
          }
        }
      }
    }
  }
}

TEST_CASE("gemm: odd sizes and several K blocks") {
  uint32_t seed = 1000;
  const int64_t ms[] = {1, 2, 3, 4, 5, 6, 8, 11, 13, 32},
                ns[] = {1, 3, 15, 16, 17, 63, 64, 65, 129, 200},
                ks[] = {1, 2, 3, 31, 64, 127, 128, 129, 640, 700};
  Rng rng(5);
  for (int round = 0; round < 60; ++round) {
    Spec s{ms[rng.below(10)], ns[rng.below(10)], {}};
    const B kind = static_cast<B>(rng.below(4));
    const Elem b = kAll[static_cast<size_t>(rng.below(kind == B::kPlainT ? 2 : 4))];
    s.terms.push_back(
        {rng.below(2) ? Elem::kBf16 : Elem::kF32, rng.below(3) == 0, kind, b, ks[rng.below(10)]});
    s.c = rng.below(2) ? Elem::kBf16 : Elem::kF32;
    s.accumulate = s.c == Elem::kF32 && rng.below(2);
    s.bias = rng.below(2);
    s.precision = rng.below(3) == 0 ? Precision::kF32 : Precision::kBf16;
    check(s, ++seed);
  }
}

TEST_CASE("gemm: NF4 weights, odd sizes and blocks cut short by the row's end") {
  uint32_t seed = 1500;
  for (const Precision precision : {Precision::kBf16, Precision::kF32}) {
    for (const B kind : {B::kWeightT, B::kWeight}) {
      for (const Elem a : {Elem::kF32, Elem::kBf16}) {
        for (const int64_t m : {1, 2, 3, 4, 7}) {
          Spec s{m, 150, {{a, m == 7, kind, Elem::kNf4, 143}}};
          s.precision = precision;
          check(s, ++seed);
        }
      }
    }
  }
  const int64_t ms[] = {1, 2, 3, 4, 5, 13, 32}, ns[] = {1, 7, 15, 16, 17, 63, 64, 65, 129, 200},
                ks[] = {1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 66, 127, 128, 129, 196, 640, 701};
  Rng rng(6);
  for (int round = 0; round < 80; ++round) {
    Spec s{ms[rng.below(7)], ns[rng.below(10)], {}};
    s.terms.push_back({rng.below(2) ? Elem::kBf16 : Elem::kF32, rng.below(3) == 0,
                       rng.below(2) ? B::kWeightT : B::kWeight, Elem::kNf4, ks[rng.below(17)]});
    if (rng.below(3) == 0) s.terms.push_back({Elem::kBf16, false, B::kPlainT, Elem::kF32, 8});
    s.c = rng.below(2) ? Elem::kBf16 : Elem::kF32;
    s.accumulate = s.c == Elem::kF32 && rng.below(2);
    s.bias = rng.below(2);
    s.precision = rng.below(3) == 0 ? Precision::kF32 : Precision::kBf16;
    check(s, ++seed);
  }
}

// One element of W^T and W at a time, so that a result is one decoded value.
void check_nf4_decode(float absmax, Precision precision) {
  Rng rng(8);
  for (const B kind : {B::kWeightT, B::kWeight}) {
    for (const int64_t m : {1, 5}) {
      Spec s{m, 16, {{Elem::kF32, false, kind, Elem::kNf4, 1}}};
      s.precision = precision;
      Problem p(s, rng);
      const float one = 1.0f;
      for (int64_t i = 0; i < m; ++i) std::memcpy(p.a[0].at(i, 0), &one, 4);
      for (float& x : p.w[0].absmax) x = absmax;
      for (int64_t code = 0; code < 16; ++code)
        *(kind == B::kWeightT ? p.w[0].source.at(code, 0) : p.w[0].source.at(0, code)) =
            static_cast<uint8_t>(code);
      for_each_variant([&](const Variant& v) {
        const std::vector<float> got = p.run(v.table, p.whole());
        for (int code = 0; code < 16; ++code) {
          const float product = kNf4Table[code] * absmax;
          const float want = precision == Precision::kBf16 ? to_bf16(product) : product;
          CHECK_MESSAGE(got[static_cast<size_t>(code)] == want,
                        v.name << " code " << code << " absmax " << absmax << " m " << m);
        }
      });
    }
  }
}

TEST_CASE("gemm: all NF4 codes decode to one product, rounded once") {
  Rng rng(9);
  std::vector<float> scales = {
      0.0f,     1.0f,     0x1p-49f, 0x1p-50f,   std::nextafter(0x1p-50f, 0.0f),
      0x1p-52f, 0x1p-55f, 0x1p-56f, 0x1p-126f,  0x1p-140f,
      0x1p99f,  0x1p100f, 0x1p126f, 0x1.8p127f, -0.25f,
      -0x1p-54f};
  for (int i = 0; i < 60; ++i) scales.push_back(std::fabs(rng.value()) + 1e-3f);
  // Products that lie in the middle between two bf16, to both sides of even.
  for (int i = 0; i < 4000; ++i) {
    const float x = 1.0f + static_cast<float>(rng.below(1 << 23)) * 0x1p-23f;
    for (const float value : kNf4Table) {
      const float product = value * x;
      uint32_t u = 0;
      std::memcpy(&u, &product, 4);
      if ((u & 0xFFFF) == 0x8000 && scales.size() < 120) scales.push_back(x);
    }
  }
  for (const uint32_t u : {0x3F808000u, 0x3F818000u, 0x3FFF8000u}) {
    float x = 0;
    std::memcpy(&x, &u, 4);
    scales.push_back(x);
  }
  for (const float absmax : scales) {
    check_nf4_decode(absmax, Precision::kBf16);
    check_nf4_decode(absmax, Precision::kF32);
  }
}

TEST_CASE("gemm: K longer than every ISA's K block, bf16 and fp32 results") {
  for (const Elem c : {Elem::kF32, Elem::kBf16}) {
    for (const B kind : {B::kWeightT, B::kWeight}) {
      for (const int64_t m : {3, 9, 100}) {
        Spec s{m, 70, {{Elem::kBf16, false, kind, Elem::kE4M3, 4500}}};
        s.c = c;
        s.bias = true;
        check(s, 2000 + static_cast<uint32_t>(c));
        s.terms[0].b = Elem::kNf4;
        check(s, 2005 + static_cast<uint32_t>(c));
        s.terms[0].b = Elem::kBf16;
        s.terms.push_back({Elem::kBf16, false, B::kPlainT, Elem::kF32, 8});
        check(s, 2010 + static_cast<uint32_t>(c));
      }
    }
    Spec s{9, 70, {{Elem::kBf16, true, B::kPlain, Elem::kE4M3, 2301}}};
    s.c = c;
    check(s, 2020);
    s.precision = Precision::kF32;
    s.terms[0] = {Elem::kF32, false, B::kWeightT, Elem::kF32, 2301};
    check(s, 2030);
  }
}

TEST_CASE("gemm: terms are joined in order") {
  uint32_t seed = 3000;
  for (const int64_t rank : {1, 8, 63, 64, 65}) {
    for (const int64_t k : {96, 576, 4160}) {
      Spec s{13,
             130,
             {{Elem::kBf16, false, B::kWeightT, Elem::kE4M3, k},
              {Elem::kBf16, false, B::kPlainT, Elem::kF32, rank}}};
      s.c = rank % 2 ? Elem::kF32 : Elem::kBf16;
      check(s, ++seed);
    }
  }
  Spec many{5, 33, {}};
  for (int t = 0; t < 9; ++t)
    many.terms.push_back({Elem::kF32, t % 2 == 1, static_cast<B>(t % 4), Elem::kBf16, 1 + 77 * t});
  many.accumulate = true;
  many.bias = true;
  check(many, ++seed);
  many.precision = Precision::kF32;
  check(many, ++seed);
}

TEST_CASE("gemm: more rows than a block of packed A holds") {
  Spec s{1700, 20, {{Elem::kBf16, false, B::kWeightT, Elem::kE5M2, 1500}}};
  s.c = Elem::kBf16;
  check(s, 4000);
}

TEST_CASE("gemm: few columns and many rows") {
  uint32_t seed = 4500;
  for (const Precision precision : {Precision::kBf16, Precision::kF32}) {
    for (const B kind : {B::kPlain, B::kPlainT}) {
      for (const bool transposed : {false, true}) {
        for (const int64_t n : {1, 8, 24}) {
          Spec s{n == 24 ? 1100 : 90, n, {{Elem::kBf16, transposed, kind, Elem::kF32, 131}}};
          s.precision = precision;
          s.c = n == 8 && precision == Precision::kBf16 ? Elem::kBf16 : Elem::kF32;
          s.accumulate = s.c == Elem::kF32 && transposed;
          s.bias = kind == B::kPlain;
          s.terms.push_back({Elem::kF32, !transposed, kind, Elem::kBf16, 40});
          check(s, ++seed);
        }
      }
    }
  }
}

TEST_CASE("gemm: no terms, empty terms and empty ranges") {
  Spec s{5, 70, {}};
  s.bias = true;
  check(s, 5000);
  s.accumulate = true;
  check(s, 5001);
  s.terms.push_back({Elem::kBf16, false, B::kPlain, Elem::kBf16, 0});
  check(s, 5002);
  Rng rng(5003);
  const Problem p(s, rng);
  for_each_variant([&](const Variant& v) {
    const std::vector<float> got = p.run(v.table, {{0, 0, 0, 70}, {5, 5, 0, 70}, {0, 5, 64, 64}});
    CHECK(std::memcmp(got.data(), p.c_before.data(), got.size() * sizeof(float)) == 0);
  });
}

TEST_CASE("gemm: all codes of both formats with every scale decode exactly") {
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    for (const Precision precision : {Precision::kBf16, Precision::kF32}) {
      for (int exp : {-41, -40, -39, -12, -1, 0, 5, 60}) {
        Rng rng(7);
        Spec s{1, 256, {{Elem::kF32, false, B::kWeightT, fp8, 1}}};
        s.precision = precision;
        Problem p(s, rng);
        const float one = 1.0f;
        std::memcpy(p.a[0].at(0, 0), &one, 4);
        for (int8_t& e : p.w[0].exps) e = static_cast<int8_t>(exp);
        const int limit = fp8 == Elem::kE4M3 ? 0x7F : 0x7C;
        for (int code = 0; code < 256; ++code)
          *p.w[0].source.at(code, 0) = static_cast<uint8_t>((code & 0x7F) < limit ? code : 0);
        for_each_variant([&](const Variant& v) {
          const std::vector<float> got = p.run(v.table, p.whole());
          for (int code = 0; code < 256; ++code) {
            double want = (code & 0x7F) < limit
                              ? std::ldexp(fp8_value(fp8, static_cast<uint8_t>(code)), exp)
                              : 0.0;
            if (precision == Precision::kBf16 && std::fabs(want) < std::ldexp(1.0, -55)) want = 0.0;
            CHECK_MESSAGE(got[static_cast<size_t>(code)] == want,
                          v.name << " code " << code << " exp " << exp);
          }
        });
      }
    }
  }
}

TEST_CASE("gemm: rows of a packed weight are looked up") {
  uint32_t seed = 6000;
  std::vector<Elem> elems = kAll;
  elems.push_back(Elem::kNf4);
  for (const Elem elem : elems) {
    for (const Elem to : {Elem::kF32, Elem::kBf16}) {
      Rng rng(++seed);
      const Weight w(150, 200, elem, rng);
      const std::vector<int32_t> rows = {149, 0, 7, 7, 64, 128, 15, 16};
      for_each_variant([&](const Variant& v) {
        const Packed packed(v.table, w);
        Matrix out(static_cast<int64_t>(rows.size()), 200, to, rng);
        v.table.gather_weight_rows(packed.w, rows.data(), out.rows,
                                   MatOut{out.at(0, 0), out.ld, to});
        size_t wrong = 0;
        for (int64_t i = 0; i < out.rows; ++i)
          for (int64_t j = 0; j < 200; ++j) {
            const float x = w.get(rows[static_cast<size_t>(i)], j);
            wrong += out.get(i, j) != (to == Elem::kBf16 ? to_bf16(x) : x);
          }
        CHECK_MESSAGE(wrong == 0, v.name << ": elements " << static_cast<int>(elem) << " to "
                                         << static_cast<int>(to));
      });
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
