// Every operation of the list is run where it is listed: on every ISA that can run here, against
// float64, and bit for bit against scalar. An operation without a runner here fails, and so does a
// runner without an operation.
#include "kernels/op_list.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "kernels/fp8_gemm.h"
#include "kernels/fp8_matrix.h"
#include "kernels/kernel_test.h"
#include "kernels/optim.h"
#include "kernels/quant.h"
#include "kernels/reduce.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::Fp8Matrix;
using test::PackedFp8;
using test::TestMatrix;
using B = GemmTerm::B;

Elem elem_of(OpFormat format) { return format == OpFormat::kE5M2 ? Elem::kE5M2 : Elem::kE4M3; }
// What gradients are stored in.
Elem gradient_of(OpFormat format) { return format == OpFormat::kE4M3 ? Elem::kE4M3 : Elem::kE5M2; }
double step_of(Elem fp8) { return fp8 == Elem::kE4M3 ? 0x1p-4 : 0x1p-3; }  // relative, half a step
double smallest_of(Elem fp8) { return fp8 == Elem::kE4M3 ? 0x1p-14 : 0x1p-16; }
double largest_of(Elem fp8) { return fp8 == Elem::kE4M3 ? 14.0 : 57344.0; }

// ---- Quantisers and casts: the nearest code, so within half a step of the value.
bool nearest(Elem fp8, double x, double got, int exponent) {
  const double bound =
      std::max(std::fabs(x) * step_of(fp8), std::ldexp(smallest_of(fp8) / 2, exponent));
  return std::fabs(got - x) <= bound;
}

Bytes run_encode(const Op& op) {
  const Elem fp8 = elem_of(op.format);
  TestMatrix x(1, 333, Elem::kF32);
  std::mt19937 random(3);
  x.fill(&random, 3.0f);
  std::vector<uint8_t> codes(333);
  QuantCounts counts;
  fp8_encode(fp8, static_cast<const float*>(x.in().data), 333, codes.data(), &counts);
  size_t wrong = 0;
  for (int64_t j = 0; j < 333; ++j)
    wrong += !nearest(fp8, std::clamp<double>(x.get(0, j), -largest_of(fp8), largest_of(fp8)),
                      test::fp8_value(fp8, codes[static_cast<size_t>(j)]), 0);
  CHECK(wrong == 0);
  return codes;
}

Bytes run_decode(const Op& op) {
  const Elem fp8 = elem_of(op.format);
  std::mt19937 random(4);
  const Fp8Matrix m(1, 333, fp8, 1, &random);
  std::vector<float> x(333);
  fp8_decode(fp8, m.codes.data(), 333, x.data());
  for (size_t j = 0; j < x.size(); ++j) CHECK(x[j] == test::fp8_value(fp8, m.codes[j]));
  Bytes out;
  test::append(&out, x);
  return out;
}

// kind 1: a scale per row and 128 columns; 128: per 128 x 128; 0: one for all.
Bytes quantized(const Op& op, int64_t kind) {
  constexpr int64_t kRows = 131, kCols = 333, kBlocks = 3;
  const Elem fp8 = elem_of(op.format);
  TestMatrix x(kRows, kCols, Elem::kBf16, kCols + 3);
  std::mt19937 random(5);
  x.fill(&random, 0.05f);
  std::vector<uint8_t> codes(kRows * kCols);
  std::vector<int8_t> exps(kRows * kBlocks);
  const int exponent = scale_exponent(fp8, amax_rows(x.in(), kCols, 0, kRows), 1.0f);
  QuantCounts counts;
  if (kind == 128) {
    for (int64_t r = 0; r < kRows; r += 128)
      quantize_weight(fp8, x.in(), kRows, kCols, 1.0f, codes.data(), kCols, exps.data(), &counts, r,
                      std::min(kRows, r + 128));
  } else if (kind == 1) {
    quantize_rows(fp8, x.in(), kCols, 1.0f, codes.data(), kCols, exps.data(), kBlocks, &counts, 0,
                  kRows);
  } else {
    quantize_rows_at(fp8, x.in(), kCols, exponent, codes.data(), kCols, exps.data(), kBlocks,
                     &counts, 0, kRows);
  }
  CHECK(counts.overflow == 0);
  size_t wrong = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kCols; ++j) {
      const int e = exps[static_cast<size_t>((kind == 128 ? i / 128 : i) * kBlocks + j / 128)];
      const double got =
          std::ldexp(test::fp8_value(fp8, codes[static_cast<size_t>(i * kCols + j)]), e);
      wrong += !nearest(fp8, x.get(i, j), got, e);
    }
  }
  CHECK(wrong == 0);
  Bytes out = codes;
  test::append(&out, exps);
  return out;
}

Bytes run_dequantize(const Op& op) {
  std::mt19937 random(6);
  const Fp8Matrix m(5, 333, elem_of(op.format), 1, &random);
  std::vector<float> x(5 * 333);
  dequantize_rows(m.view(), 333, {x.data(), 333, Elem::kF32}, 0, 5);
  size_t wrong = 0;
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 333; ++j) wrong += x[static_cast<size_t>(i * 333 + j)] != m.get(i, j);
  CHECK(wrong == 0);
  Bytes out;
  test::append(&out, x);
  return out;
}

Bytes run_error(const Op& op) {
  std::mt19937 random(7);
  const Fp8Matrix codes(5, 333, elem_of(op.format), 1, &random);
  TestMatrix x(5, 333, Elem::kF32, 333 + 2);
  x.fill(&random);
  QuantError got;
  quant_error(x.in(), codes.view(), 333, 0, 5, &got);
  QuantError want;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 333; ++j) {
      const double v = x.get(i, j), d = codes.get(i, j) - v;
      want.error_squares += d * d;
      want.value_squares += v * v;
      want.relative_squares += d / v * (d / v);
      ++want.values;
    }
  }
  CHECK(got.values == want.values);
  CHECK(got.error_squares == doctest::Approx(want.error_squares).epsilon(1e-6));
  CHECK(got.value_squares == doctest::Approx(want.value_squares).epsilon(1e-6));
  CHECK(got.relative_squares == doctest::Approx(want.relative_squares).epsilon(1e-6));
  Bytes out;
  test::append_value(&out, got.error_squares);
  test::append_value(&out, got.value_squares);
  test::append_value(&out, got.relative_squares);
  return out;
}

// ---- Packed weights.
Bytes run_gather(const Op& op) {
  std::mt19937 random(8);
  const Fp8Matrix m(200, 333, elem_of(op.format), 128, &random);
  const PackedFp8 packed(m);
  const std::vector<int32_t> rows = {199, 0, 64, 64, 127, 128};
  std::vector<float> x(rows.size() * 333);
  gather_weight_rows(packed.w, rows.data(), static_cast<int64_t>(rows.size()),
                     {x.data(), 333, Elem::kF32});
  size_t wrong = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t j = 0; j < 333; ++j)
      wrong += x[i * 333 + static_cast<size_t>(j)] != m.get(rows[i], j);
  CHECK(wrong == 0);
  Bytes out;
  test::append(&out, x);
  return out;
}

// ---- Products. X [m, k], W [n, k], dY [m, n] of a linear layer, and what each direction makes.
enum class Kind { kLinear, kLora, kBlas, kAddmm };

struct Layer {
  int64_t m, n, k;
  Fp8Matrix x, w, dy;
  TestMatrix x16, dy16, h, b;  // of kLinear and kLora: bf16 activations; of kLora: H and B^T or A
  static constexpr int64_t kRank = 8;

  Layer(int64_t m_, OpFormat format, std::mt19937* random)
      : m(m_),
        n(200),
        k(333),
        x(m, k, elem_of(format), 1, random),
        w(n, k, elem_of(format), 128, random),
        dy(m, n, gradient_of(format), 1, random),
        x16(m, k, Elem::kBf16, k + 1),
        dy16(m, n, Elem::kBf16, n + 1),
        h(m, kRank, Elem::kBf16),
        b(kRank, k, Elem::kBf16, k + 5) {
    for (TestMatrix* t : {&x16, &dy16, &h, &b}) t->fill(random);
  }
};

// A product in float64, and the sum of its terms' magnitudes, for the bound.
struct Sums {
  int64_t rows, cols;
  std::vector<double> exact, magnitude;
  Sums(int64_t rows_, int64_t cols_) : rows(rows_), cols(cols_) {
    exact.resize(static_cast<size_t>(rows * cols));
    magnitude.resize(exact.size());
  }
  template <class A, class W>
  void add(int64_t k, A a, W w) {
    std::vector<double> line(static_cast<size_t>(cols));
    for (int64_t kk = 0; kk < k; ++kk) {
      for (int64_t j = 0; j < cols; ++j) line[static_cast<size_t>(j)] = w(kk, j);
      for (int64_t i = 0; i < rows; ++i) {
        const double x = a(i, kk);
        double* sum = &exact[static_cast<size_t>(i * cols)];
        double* size = &magnitude[static_cast<size_t>(i * cols)];
        for (int64_t j = 0; j < cols; ++j) {
          const double product = x * line[static_cast<size_t>(j)];
          sum[j] += product;
          size[j] += std::fabs(product);
        }
      }
    }
  }
};

Sums exact_product(const Layer& l, Kind kind, Direction direction) {
  const bool codes = kind == Kind::kBlas || kind == Kind::kAddmm;
  const auto x = [&](int64_t r, int64_t c) { return codes ? l.x.get(r, c) : l.x16.get(r, c); };
  const auto dy = [&](int64_t r, int64_t c) { return codes ? l.dy.get(r, c) : l.dy16.get(r, c); };
  Sums sums(direction == Direction::kBackwardWeight ? l.n : l.m,
            direction == Direction::kForward ? l.n : l.k);
  switch (direction) {
    case Direction::kForward:
      sums.add(l.k, x, [&](int64_t kk, int64_t j) { return l.w.get(j, kk); });
      break;
    case Direction::kBackwardInput:
      sums.add(l.n, dy, [&](int64_t kk, int64_t j) { return l.w.get(kk, j); });
      break;
    default:
      sums.add(
          l.m, [&](int64_t i, int64_t kk) { return dy(kk, i); },
          [&](int64_t kk, int64_t j) { return l.x.get(kk, j); });
      break;
  }
  if (kind == Kind::kLora)
    sums.add(
        Layer::kRank, [&](int64_t i, int64_t r) { return l.h.get(i, r); },
        [&](int64_t r, int64_t j) { return l.b.get(r, j); });
  return sums;
}

Bytes run_product(const Op& op, Kind kind, int64_t m) {
  constexpr float kAlpha = 0.75f, kBeta = -1.5f;
  std::mt19937 random(9);
  const Layer l(m, op.format, &random);
  const PackedFp8 packed(l.w);
  const bool codes = kind == Kind::kBlas || kind == Kind::kAddmm;
  const Mat x = codes ? l.x.view() : l.x16.in(), dy = codes ? l.dy.view() : l.dy16.in();
  GemmTerm terms[2] = {};
  int64_t rows = l.m, cols = l.k;
  switch (op.direction) {
    case Direction::kForward:
      terms[0] = {x, false, B::kWeightT, &packed.w, {}, l.k};
      cols = l.n;
      break;
    case Direction::kBackwardInput:
      terms[0] = {dy, false, B::kWeight, &packed.w, {}, l.n};
      break;
    default:
      terms[0] = {dy, true, B::kPlain, nullptr, l.x.view(), l.m};
      rows = l.n;
      break;
  }
  const bool lora = kind == Kind::kLora;
  if (lora) terms[1] = {l.h.in(), false, B::kPlain, nullptr, l.b.in(), Layer::kRank};
  TestMatrix c(rows, cols, Elem::kF32, cols + 2);
  c.fill(&random);
  const TestMatrix before = c;
  const GemmJob job{rows, cols, terms, lora ? 2 : 1, c.out(), false, nullptr, Precision::kBf16};
  if (kind == Kind::kAddmm) {
    AlignedBuffer scratch(fp8_addmm_scratch_bytes(job));
    fp8_addmm(job, kAlpha, kBeta, 0, rows, 0, cols, scratch.data());
  } else if (kind == Kind::kBlas) {
    AlignedBuffer scratch(loongblas_fp8_gemm_scratch_bytes(job));
    loongblas_fp8_gemm(job, 0, rows, 0, cols, scratch.data());
  } else {
    AlignedBuffer scratch(gemm_scratch_bytes());
    gemm(job, 0, rows, 0, cols, scratch.data());
  }
  CHECK(c.surroundings_intact());
  // The same for every ISA, and slow where floating point is emulated.
  static std::map<std::tuple<const Op*, Kind, int64_t>, Sums> known;
  const auto key = std::make_tuple(&op, kind, m);
  if (!known.contains(key)) known.emplace(key, exact_product(l, kind, op.direction));
  const Sums& sums = known.at(key);
  size_t wrong = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const auto at = static_cast<size_t>(i * cols + j);
      double want = sums.exact[at], size = sums.magnitude[at];
      if (kind == Kind::kAddmm) {
        const double start = kBeta * static_cast<double>(before.get(i, j));
        want = kAlpha * want + start;
        size = kAlpha * size + std::fabs(start);
      }
      wrong += !(std::fabs(c.get(i, j) - want) <= 360 * 0x1p-24 * size);
    }
  }
  CHECK(wrong == 0);
  return c.bytes();
}

Bytes run_gemv(const Op& op) {
  Bytes out;
  for (const int64_t m : {1, 2, 3, 4}) {
    const Bytes one = run_product(op, Kind::kLinear, m);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

// ---- Moments as codes. exponent_of: what a block of 128 is scaled by.
constexpr int64_t kMoments = 300;

Bytes run_moments(const Op& op) {
  const Elem fp8 = elem_of(op.format);
  std::mt19937 random(10);
  TestMatrix x(1, kMoments, Elem::kF32);
  x.fill(&random, 1e-2f);
  Bytes out;
  for (const bool root : {false, true}) {
    std::vector<float> source(kMoments), back(kMoments);
    for (int64_t j = 0; j < kMoments; ++j) {
      const float v = x.get(0, j);
      source[static_cast<size_t>(j)] = root ? v * v : v;
    }
    std::vector<uint8_t> codes(kMoments);
    std::vector<int8_t> exps(3);
    write_moments(source.data(), codes.data(), exps.data(), fp8, root, kMoments);
    read_moments(codes.data(), exps.data(), fp8, root, back.data(), kMoments);
    for (size_t j = 0; j < codes.size(); ++j) {
      const double stored = std::ldexp(test::fp8_value(fp8, codes[j]), exps[j / 128]);
      const double value = root ? std::sqrt(static_cast<double>(source[j])) : source[j];
      CHECK(back[j] == doctest::Approx(root ? stored * stored : stored).epsilon(1e-6));
      // sqrt(v) is never stored as 0 where v is not, so the smallest code stands for all below it.
      const double bound =
          std::max(std::fabs(value) * step_of(fp8), std::ldexp(smallest_of(fp8), exps[j / 128]));
      CHECK(std::fabs(stored - value) <= bound * 1.0001);
    }
    test::append(&out, codes);
    test::append(&out, exps);
    test::append(&out, back);
  }
  return out;
}

Bytes run_adamw(const Op& op) {
  const Elem fp8 = elem_of(op.format);
  const AdamW h{1e-2, 0.9, 0.999, 1e-8, 0.01, 1.0, 1 - 0.9, std::sqrt(1 - 0.999)};
  std::mt19937 random(11);
  TestMatrix start(1, kMoments, Elem::kF32), grad(1, kMoments, Elem::kF32);
  start.fill(&random);
  grad.fill(&random, 0.02f);
  std::vector<float> p(kMoments), m_before(kMoments), v_before(kMoments);
  for (int64_t j = 0; j < kMoments; ++j) p[static_cast<size_t>(j)] = start.get(0, j);
  std::vector<uint8_t> m(kMoments), v(kMoments);
  std::vector<int8_t> m_exps(3), v_exps(3);
  std::vector<uint16_t> draws(kMoments);
  for (uint16_t& d : draws) d = static_cast<uint16_t>(random());
  const AdamWArrays arrays{p.data(),      Elem::kF32,    m.data(), v.data(),    fp8,
                           m_exps.data(), v_exps.data(), nullptr,  draws.data()};
  adamw_narrow(h, arrays, static_cast<const float*>(grad.in().data), kMoments);
  for (int64_t j = 0; j < kMoments; ++j) {
    // From empty moments, so the update is the formula's on exact ones.
    const double g = grad.get(0, j), m1 = (1 - h.beta1) * g, v1 = (1 - h.beta2) * g * g;
    const double want = start.get(0, j) * (1 - h.lr * h.weight_decay) -
                        h.lr / h.bias1 * m1 / (std::sqrt(v1) / h.sqrt_bias2 + h.eps);
    const auto at = static_cast<size_t>(j);
    CHECK(std::fabs(p[at] - want) <= 1e-6 * std::fabs(want) + 1e-7);
    // Rounded up or down, so within a whole step.
    const double stored = std::ldexp(test::fp8_value(fp8, m[at]), m_exps[at / 128]);
    CHECK(std::fabs(stored - m1) <= std::max(std::fabs(m1) * 2 * step_of(fp8),
                                             std::ldexp(smallest_of(fp8), m_exps[at / 128])) *
                                        1.0001);
  }
  Bytes out;
  test::append(&out, p);
  test::append(&out, m);
  test::append(&out, v);
  test::append(&out, m_exps);
  test::append(&out, v_exps);
  return out;
}

// ---- Codes in words.
Bytes run_words(const Op& op) {
  constexpr int64_t kCount = 333;
  const Elem fp8 = elem_of(op.format);
  std::mt19937 random(12);
  TestMatrix x(1, kCount, Elem::kF32);
  x.fill(&random, 1e-3f);
  std::vector<uint64_t> words(words_of_codes(kCount));
  std::vector<int8_t> exps(3);
  QuantCounts counts;
  pack_fp8(fp8, x.in().data, Elem::kF32, kCount, 1.0f, words.data(), exps.data(), &counts);
  std::vector<float> back(kCount, 0.5f), sums(kCount, 0.5f);
  unpack_fp8(fp8, words.data(), exps.data(), kCount, back.data(), false);
  unpack_fp8(fp8, words.data(), exps.data(), kCount, sums.data(), true);
  size_t wrong = 0;
  for (int64_t j = 0; j < kCount; ++j) {
    const auto at = static_cast<size_t>(j);
    const auto code = static_cast<uint8_t>(words[at / 8] >> (8 * (at % 8)));
    const int e = exps[at / 128];
    const double value = std::ldexp(test::fp8_value(fp8, code), e);
    wrong += !nearest(fp8, x.get(0, j), value, e) || back[at] != value ||
             sums[at] != 0.5f + static_cast<float>(value);
  }
  CHECK(wrong == 0);
  Bytes out;
  test::append(&out, words);
  test::append(&out, exps);
  test::append(&out, sums);
  return out;
}

using Runner = std::function<Bytes(const Op&)>;

const std::map<std::string, Runner>& runners() {
  static const std::map<std::string, Runner> all = {
      {"fp8_encode", run_encode},
      {"fp8_decode", run_decode},
      {"fp8_quantize_rows", [](const Op& op) { return quantized(op, 1); }},
      {"fp8_quantize_rows_at", [](const Op& op) { return quantized(op, 0); }},
      {"fp8_quantize_weight", [](const Op& op) { return quantized(op, 128); }},
      {"fp8_dequantize_rows", run_dequantize},
      {"fp8_quant_error", run_error},
      {"fp8_pack_weight", run_gather},  // what was packed is read back
      {"fp8_gather_rows", run_gather},
      {"fp8_linear", [](const Op& op) { return run_product(op, Kind::kLinear, 67); }},
      {"fp8_linear_lora", [](const Op& op) { return run_product(op, Kind::kLora, 67); }},
      {"fp8_gemv", run_gemv},
      {"loongblas_fp8_gemm", [](const Op& op) { return run_product(op, Kind::kBlas, 67); }},
      {"fp8_addmm", [](const Op& op) { return run_product(op, Kind::kAddmm, 67); }},
      {"fp8_adamw", run_adamw},
      {"fp8_read_moments", run_moments},
      {"fp8_write_moments", run_moments},
      {"fp8_pack_words", run_words},
      {"fp8_unpack_words", run_words},
  };
  return all;
}

std::string label(const Op& op) {
  return std::string(op.row->name) + " " + direction_name(op.direction) + " " +
         format_name(op.format);
}

TEST_CASE("op list: every operation runs on every ISA, against float64 and scalar") {
  std::set<std::string> listed;
  for (const Op& op : fp8_ops()) {
    INFO(label(op));
    listed.insert(op.row->name);
    const auto runner = runners().find(op.row->name);
    REQUIRE_MESSAGE(runner != runners().end(), label(op) << " is listed and not tested");
    Bytes expected;
    for (const Isa isa : testable_isas()) {
      if (!op.row->in_table(isa)) continue;
      const test::UseIsa use(isa);
      INFO("isa: ", test::isa_label(isa));
      const Bytes got = runner->second(op);
      if (isa == Isa::kScalar) expected = got;
      CHECK_FALSE(got.empty());
      CHECK((got == expected));
    }
  }
  for (const auto& [name, run] : runners())
    CHECK_MESSAGE(listed.contains(name), name << " has a runner and is not listed");
}

TEST_CASE("op list: at least 47, each once, fp8_addmm and loongblas_fp8_gemm among them") {
  std::set<std::string> seen;
  for (const Op& op : fp8_ops()) CHECK_MESSAGE(seen.insert(label(op)).second, label(op));
  CHECK(seen.size() >= 47);
  for (const char* name :
       {"fp8_addmm forward e4m3", "fp8_addmm backward_weight hybrid",
        "loongblas_fp8_gemm forward e5m2", "loongblas_fp8_gemm backward_input hybrid"})
    CHECK(seen.contains(name));
}

TEST_CASE("op list: a compiled ISA has every operation, and its own table of every family") {
  CHECK(compiled_isas().front() == Isa::kScalar);
  for (const Isa isa : available_isas())
    CHECK(std::find(compiled_isas().begin(), compiled_isas().end(), isa) != compiled_isas().end());
  for (const Isa isa : compiled_isas()) {
    INFO(isa_name(isa));
    for (const Op& op : fp8_ops()) CHECK(op.row->in_table(isa));
    for (const Family* family : families()) CHECK(family->table_for(isa) == isa);
  }
  // An ISA of another machine runs scalar.
#ifdef __x86_64__
  for (const Family* family : families()) CHECK(family->table_for(Isa::kLasx) == Isa::kScalar);
#endif
  CHECK(families().size() == 7);
}

}  // namespace
}  // namespace loongforge::kernels
