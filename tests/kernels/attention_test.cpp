// Attention against the float64 formula, and bit for bit between ISAs, splits, packings and the KV
// cache.
#include "kernels/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "kernels/generic/attention.h"
#include "kernels/isa.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels {

#if LF_HAVE_AVX512
namespace avx512 {
extern const AttentionTable kAttentionForms[2];  // vdpbf16ps, fp32 FMA
}
#endif

namespace {

float bf16_round(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  u = static_cast<uint32_t>(round_operand(u)) << 16;
  std::memcpy(&x, &u, 4);
  return x;
}

// A matrix of float values, kept in the element type that the kernel is to read.
struct Matrix {
  int64_t rows = 0, cols = 0;
  Elem elem = Elem::kF32;
  std::vector<float> f32;
  std::vector<Bf16> bf16;

  Matrix() = default;
  Matrix(int64_t rows_in, int64_t cols_in, Elem elem_in)
      : rows(rows_in), cols(cols_in), elem(elem_in) {
    f32.resize(elem == Elem::kF32 ? static_cast<size_t>(rows * cols) : 0);
    bf16.resize(elem == Elem::kBf16 ? static_cast<size_t>(rows * cols) : 0);
  }
  float get(int64_t i, int64_t j) const {
    const auto at = static_cast<size_t>(i * cols + j);
    if (elem == Elem::kF32) return f32[at];
    const uint32_t u = static_cast<uint32_t>(bf16[at].bits) << 16;
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
  void set(int64_t i, int64_t j, float x) {
    const auto at = static_cast<size_t>(i * cols + j);
    if (elem == Elem::kF32) {
      f32[at] = x;
      return;
    }
    uint32_t u;
    std::memcpy(&u, &x, 4);
    bf16[at].bits = round_operand(u);
  }
  Mat in() const {
    return {elem == Elem::kF32 ? static_cast<const void*>(f32.data()) : bf16.data(), cols, elem};
  }
  MatOut out() {
    return {elem == Elem::kF32 ? static_cast<void*>(f32.data()) : bf16.data(), cols, elem};
  }
  bool same_bits(const Matrix& other) const {
    return elem == other.elem && f32.size() == other.f32.size() &&
           bf16.size() == other.bf16.size() &&
           (f32.empty() || std::memcmp(f32.data(), other.f32.data(), f32.size() * 4) == 0) &&
           (bf16.empty() || std::memcmp(bf16.data(), other.bf16.data(), bf16.size() * 2) == 0);
  }
};

struct Shape {
  int64_t heads, kv_heads, dim, window;
  std::vector<int64_t> docs;
  Precision precision;
  Elem elem = Elem::kF32;  // of inputs and outputs
  float spread = 1.0f;     // of q and k
  bool off_grid = false;   // inputs that Precision::kBf16 has to round
};

std::string describe(const Shape& s) {
  std::string text = std::to_string(s.heads) + ":" + std::to_string(s.kv_heads) + " x " +
                     std::to_string(s.dim) + " window " + std::to_string(s.window) +
                     (s.precision == Precision::kBf16 ? " bf16" : " fp32") + " docs";
  for (const int64_t n : s.docs) text += " " + std::to_string(n);
  return text;
}

struct Results {
  Matrix o, dq, dk, dv;
  std::vector<float> lse;
  bool same_bits(const Results& other) const {
    return o.same_bits(other.o) && dq.same_bits(other.dq) && dk.same_bits(other.dk) &&
           dv.same_bits(other.dv) && std::memcmp(lse.data(), other.lse.data(), lse.size() * 4) == 0;
  }
};

// Inputs of one packed batch; the documents follow each other with one unused row between them.
struct Batch {
  Shape shape;
  std::vector<AttnDoc> docs;
  int64_t rows = 0;
  Matrix q, k, v, d_o;
  float scale;

  explicit Batch(const Shape& s) : shape(s), scale(1.0f / std::sqrt(static_cast<float>(s.dim))) {
    for (const int64_t n : s.docs) {
      docs.push_back({rows, n, rows, n});
      rows += n + 1;
    }
    q = Matrix(rows, s.heads * s.dim, s.elem);
    k = Matrix(rows, s.kv_heads * s.dim, s.elem);
    v = Matrix(rows, s.kv_heads * s.dim, s.elem);
    d_o = Matrix(rows, s.heads * s.dim, s.elem);
    std::mt19937 random(static_cast<uint32_t>(rows * 131 + s.dim));
    fill(&q, s.spread, &random);
    fill(&k, s.spread, &random);
    fill(&v, 1.0f, &random);
    fill(&d_o, 1e-3f, &random);
  }
  void fill(Matrix* m, float size, std::mt19937* random) const {
    for (int64_t i = 0; i < m->rows; ++i) {
      for (int64_t j = 0; j < m->cols; ++j) {
        // A sum of uniform draws: about normal, and the same on every library.
        float x = -6.0f;
        for (int n = 0; n < 12; ++n) x += static_cast<float>((*random)() >> 8) * 0x1p-24f;
        x *= size;
        // Operands on the bf16 grid, so that the formula is given what the kernel multiplies.
        const bool on_grid = shape.precision == Precision::kBf16 && !shape.off_grid;
        m->set(i, j, on_grid ? bf16_round(x) : x);
      }
    }
  }

  Results results() const {
    Results r;
    r.o = Matrix(rows, shape.heads * shape.dim, shape.elem);
    r.dq = r.o;
    r.dk = Matrix(rows, shape.kv_heads * shape.dim, shape.elem);
    r.dv = r.dk;
    r.lse.resize(static_cast<size_t>(shape.heads * rows));
    return r;
  }
  AttnJob job(Results* r) const {
    AttnJob job{};
    job.heads = shape.heads;
    job.kv_heads = shape.kv_heads;
    job.head_dim = shape.dim;
    job.scale = scale;
    job.window = shape.window;
    job.precision = shape.precision;
    job.q = q.in();
    job.k = k.in();
    job.v = v.in();
    job.o = r->o.out();
    job.lse = r->lse.data();
    job.lse_ld = rows;
    job.o_saved = r->o.in();
    job.d_o = d_o.in();
    job.dq = r->dq.out();
    job.dk = r->dk.out();
    job.dv = r->dv.out();
    return job;
  }
  int64_t longest() const {
    int64_t n = 0;
    for (const AttnDoc& d : docs) n = std::max(n, d.kv_len);
    return n;
  }
};

// Scratch of exactly the promised size, filled with NaN patterns: nothing may be read before it is
// written.
struct Scratch {
  AlignedBuffer buffer;
  size_t bytes;
  Scratch(const AttnJob& job, int64_t longest, bool backward)
      : buffer(attention_scratch_bytes(job, longest, backward) + 64),
        bytes(attention_scratch_bytes(job, longest, backward)) {
    std::memset(buffer.data(), 0xFF, buffer.size());
  }
  ~Scratch() {
    for (size_t i = bytes; i < bytes + 64; ++i) CHECK(buffer.data()[i] == 0xFF);
  }
  void* get() { return buffer.data(); }
};

Results run(const Batch& batch) {
  Results r = batch.results();
  const AttnJob job = batch.job(&r);
  Scratch scratch(job, batch.longest(), false), back(job, batch.longest(), true);
  for (const AttnDoc& doc : batch.docs) {
    for (int64_t h = 0; h < job.kv_heads; ++h) {
      attention_forward(job, doc, h, 0, doc.q_len, scratch.get());
      attention_backward(job, doc, h, back.get());
    }
  }
  return r;
}

struct UseIsa {
  Isa before = active_isa();
  explicit UseIsa(Isa isa) { REQUIRE(set_active_isa(isa)); }
  ~UseIsa() { set_active_isa(before); }
};

// The formula in double, one document.
struct Reference {
  std::vector<double> o, lse, dq, dk, dv;  // [rows][cols] of the batch
};
Reference reference(const Batch& b) {
  const Shape& s = b.shape;
  const int64_t group = s.heads / s.kv_heads, dim = s.dim, qc = s.heads * dim,
                kc = s.kv_heads * dim;
  Reference r;
  r.o.assign(static_cast<size_t>(b.rows * qc), 0.0);
  r.dq = r.o;
  r.dk.assign(static_cast<size_t>(b.rows * kc), 0.0);
  r.dv = r.dk;
  r.lse.assign(static_cast<size_t>(s.heads * b.rows), 0.0);
  std::vector<double> p, dp;
  for (const AttnDoc& doc : b.docs) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < doc.q_len; ++i) {
        const int64_t row = doc.q_row + i, qh = h * dim, kh = h / group * dim;
        const int64_t lo = s.window > 0 ? std::max<int64_t>(0, i + 1 - s.window) : 0;
        p.assign(static_cast<size_t>(i + 1), 0.0);
        dp = p;
        double top = -INFINITY, sum = 0, delta = 0;
        const auto at = [](int64_t x) { return static_cast<size_t>(x); };
        for (int64_t j = lo; j <= i; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < dim; ++d)
            dot += static_cast<double>(b.q.get(row, qh + d)) *
                   static_cast<double>(b.k.get(doc.kv_row + j, kh + d));
          p[at(j)] = dot * static_cast<double>(b.scale);
          top = std::max(top, p[at(j)]);
        }
        for (int64_t j = lo; j <= i; ++j) sum += p[at(j)] = std::exp(p[at(j)] - top);
        r.lse[at(h * b.rows + row)] = top + std::log(sum);
        for (int64_t j = lo; j <= i; ++j) {
          p[at(j)] /= sum;
          for (int64_t d = 0; d < dim; ++d) {
            const double v = static_cast<double>(b.v.get(doc.kv_row + j, kh + d));
            r.o[at(row * qc + qh + d)] += p[at(j)] * v;
            dp[at(j)] += static_cast<double>(b.d_o.get(row, qh + d)) * v;
          }
          delta += p[at(j)] * dp[at(j)];
        }
        for (int64_t j = lo; j <= i; ++j) {
          const double ds = p[at(j)] * (dp[at(j)] - delta) * static_cast<double>(b.scale);
          const int64_t key = doc.kv_row + j;
          for (int64_t d = 0; d < dim; ++d) {
            r.dq[at(row * qc + qh + d)] += ds * static_cast<double>(b.k.get(key, kh + d));
            r.dk[at(key * kc + kh + d)] += ds * static_cast<double>(b.q.get(row, qh + d));
            r.dv[at(key * kc + kh + d)] += p[at(j)] * static_cast<double>(b.d_o.get(row, qh + d));
          }
        }
      }
    }
  }
  return r;
}

// Relative L2 distance; both are 0 in rows between documents.
double distance(const Matrix& m, const std::vector<double>& want) {
  double num = 0, den = 0;
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) {
      const double w = want[static_cast<size_t>(i * m.cols + j)];
      const double e = static_cast<double>(m.get(i, j)) - w;
      num += e * e;
      den += w * w;
    }
  }
  return den == 0 ? std::sqrt(num) : std::sqrt(num / den);
}

void check_against_formula(const Batch& batch, const Reference& want) {
  const Shape& shape = batch.shape;
  CAPTURE(describe(shape));
  const Results got = run(batch);
  // bf16: P and dS are rounded to 8 bits (at most 2^-9 each), stored results once more.
  const double bound = shape.precision == Precision::kF32 ? 3e-6
                       : shape.elem == Elem::kF32         ? 2.5e-3
                                                          : 4e-3;
  CHECK(distance(got.o, want.o) <= bound);
  CHECK(distance(got.dv, want.dv) <= bound);
  // dS is a difference: its relative error is a few times that of its terms; a single key has dS =
  // 0.
  if (batch.longest() > 1 && shape.window != 1) {
    const double loose = shape.precision == Precision::kF32 ? 1e-5
                         : shape.elem == Elem::kF32         ? 5e-3
                                                            : 2e-2;
    CHECK(distance(got.dq, want.dq) <= loose);
    CHECK(distance(got.dk, want.dk) <= loose);
  }
  double worst = 0;
  for (size_t i = 0; i < want.lse.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(got.lse[i]) - want.lse[i]));
  CHECK(worst <= 3e-6 * (1 + static_cast<double>(shape.spread * shape.spread) * 8));
}

constexpr Precision kBoth[] = {Precision::kBf16, Precision::kF32};

// Every size and length costs minutes where arithmetic is emulated: key blocks of 512 and query
// blocks of 192 are passed by a little.
std::vector<Shape> shapes(Precision p) {
  return {
      {1, 1, 8, 0, {1}, p},
      {2, 1, 8, 0, {1, 2, 3, 5, 8, 17}, p},
      {4, 2, 32, 0, {33, 64, 65, 96, 97}, p},
      {9, 3, 64, 0, {31, 130}, p},
      {2, 1, 64, 0, {515}, p},
      {2, 1, 128, 0, {150}, p},
      {1, 1, 128, 0, {577}, p, Elem::kF32, 1.5f},
      {2, 2, 40, 0, {129}, p},
      {1, 1, 256, 0, {100}, p},
      {2, 1, 16, 1, {40}, p},
      {2, 1, 64, 7, {150}, p},
      {2, 1, 64, 100, {611}, p},
      {1, 1, 32, 600, {1100}, p},
  };
}

TEST_CASE("attention: formula in float64") {
  for (const Shape& s : shapes(Precision::kF32)) {
    const Batch batch(s);
    check_against_formula(batch, reference(batch));
  }
  for (Shape s : shapes(Precision::kBf16)) {
    const Batch batch(s);
    const Reference want = reference(batch);
    check_against_formula(batch, want);
    s.elem = Elem::kBf16;  // which holds the same values
    check_against_formula(Batch(s), want);
  }
}

TEST_CASE("attention: the same bits on every ISA") {
  for (const Precision p : kBoth) {
    for (const Shape& s : shapes(p)) {
      CAPTURE(describe(s));
      const Batch batch(s);
      Results scalar;
      {
        const UseIsa use(Isa::kScalar);
        scalar = run(batch);
      }
      for (const Isa isa : testable_isas()) {
        if (isa == Isa::kScalar) continue;
        CAPTURE(std::string(isa_name(isa)));
        const UseIsa use(isa);
        CHECK(run(batch).same_bits(scalar));
      }
    }
  }
  for (const Isa isa : testable_isas()) {
    const std::string how =
        std::string(isa_name(isa)) + (isa_is_emulated(isa) ? " (emulated)" : "");
    MESSAGE("attention ran on ", how);
  }
}

#if LF_HAVE_AVX512
TEST_CASE("attention: both forms of AVX-512 bf16 products give the same bits") {
  bool usable = false;
  for (const Isa isa : testable_isas()) usable |= isa == Isa::kAvx512;
  if (!usable) return;
  for (const Shape& s : shapes(Precision::kBf16)) {
    CAPTURE(describe(s));
    const Batch batch(s);
    Results of[2] = {batch.results(), batch.results()};
    for (int form = 0; form < 2; ++form) {
      const AttentionTable& table = avx512::kAttentionForms[form];
      const AttnJob job = batch.job(&of[form]);
      AlignedBuffer scratch(std::max(table.scratch_bytes(job, batch.longest(), false),
                                     table.scratch_bytes(job, batch.longest(), true)));
      for (const AttnDoc& doc : batch.docs) {
        for (int64_t h = 0; h < job.kv_heads; ++h) {
          table.forward(job, doc, h, 0, doc.q_len, scratch.data());
          table.backward(job, doc, h, 0, doc.q_len, 0, doc.kv_len, true, true, scratch.data());
        }
      }
    }
    CHECK(of[0].same_bits(of[1]));
    CHECK(of[0].same_bits(run(batch)));
  }
}
#endif

TEST_CASE("attention: fp32 inputs are rounded to bf16 operands") {
  Shape rounded{4, 2, 40, 0, {75, 130}, Precision::kBf16, Elem::kF32};
  Shape whole = rounded;
  whole.off_grid = true;
  const Batch on(rounded), off(whole);
  std::vector<Results> all;
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    CAPTURE(std::string(isa_name(isa)));
    all.push_back(run(off));
    CHECK(all.back().same_bits(all.front()));
    // dO enters D = sum of dO * O unrounded, so dQ and dK differ in what is not an operand.
    const Results want = run(on);
    CHECK(all.back().o.same_bits(want.o));
    CHECK(std::memcmp(all.back().lse.data(), want.lse.data(), want.lse.size() * 4) == 0);
    CHECK(all.back().dv.same_bits(want.dv));
  }
}

// Splits [0, n) at uneven places.
std::vector<int64_t> cuts(int64_t n) {
  std::vector<int64_t> c = {0};
  for (const int64_t step : {1, 13, 64, 1, 97, 300, 2, 700})
    if (c.back() + step < n) c.push_back(c.back() + step);
  c.push_back(n);
  return c;
}

TEST_CASE("attention: the same bits for every split") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    for (const Precision p : kBoth) {
      for (const Shape& s : shapes(p)) {
        const bool wide = s.dim == 128;  // what is split are queries and keys
        if (s.docs[0] > 200 && (wide || (isa == Isa::kScalar && p == Precision::kF32)))
          continue;  // slow, and the same code
        CAPTURE(describe(s));
        CAPTURE(std::string(isa_name(isa)));
        const Batch batch(s);
        const Results whole = run(batch);
        Results r = batch.results();
        const AttnJob job = batch.job(&r);
        Scratch scratch(job, batch.longest(), false), back(job, batch.longest(), true);
        for (const AttnDoc& doc : batch.docs) {
          const std::vector<int64_t> c = cuts(doc.q_len);
          for (int64_t h = 0; h < job.kv_heads; ++h) {
            for (size_t i = 0; i + 1 < c.size(); ++i)
              attention_forward(job, doc, h, c[i], c[i + 1], scratch.get());
            for (size_t i = 0; i + 1 < c.size(); ++i) {
              attention_backward_queries(job, doc, h, c[i], c[i + 1], back.get());
              attention_backward_keys(job, doc, h, c[i], c[i + 1], back.get());
            }
          }
        }
        CHECK(r.same_bits(whole));
      }
    }
  }
}

TEST_CASE("attention: a document has the same bits packed and alone") {
  for (const Precision p : kBoth) {
    const Batch packed({2, 1, 32, 0, {5, 90, 1, 520, 33}, p, Elem::kBf16});
    const Results all = run(packed);
    for (const AttnDoc& doc : packed.docs) {
      Shape s = packed.shape;
      s.docs = {doc.q_len};
      Batch alone(s);
      const auto copy = [&](const Matrix& from, int64_t row, Matrix* to, int64_t to_row) {
        for (int64_t i = 0; i < doc.q_len; ++i)
          for (int64_t j = 0; j < from.cols; ++j) to->set(to_row + i, j, from.get(row + i, j));
      };
      copy(packed.q, doc.q_row, &alone.q, 0);
      copy(packed.k, doc.q_row, &alone.k, 0);
      copy(packed.v, doc.q_row, &alone.v, 0);
      copy(packed.d_o, doc.q_row, &alone.d_o, 0);
      const Results got = run(alone);
      Results want = alone.results();
      copy(all.o, doc.q_row, &want.o, 0);
      copy(all.dq, doc.q_row, &want.dq, 0);
      copy(all.dk, doc.q_row, &want.dk, 0);
      copy(all.dv, doc.q_row, &want.dv, 0);
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < doc.q_len; ++i)
          want.lse[static_cast<size_t>(h * alone.rows + i)] =
              all.lse[static_cast<size_t>(h * packed.rows + doc.q_row + i)];
      CAPTURE(doc.q_len);
      CHECK(got.same_bits(want));
    }
  }
}

TEST_CASE("attention: tokens generated with a KV cache equal the whole forward") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    for (const Precision p : kBoth) {
      for (const int64_t window : {0, 20, 515}) {
        const Batch batch({2, 1, 64, window, {530}, p, Elem::kBf16});
        Results whole = batch.results(), steps = batch.results();
        const AttnJob all = batch.job(&whole), job = batch.job(&steps);
        Scratch scratch(job, batch.longest(), false);
        for (int64_t h = 0; h < job.kv_heads; ++h) {
          attention_forward(all, batch.docs[0], h, 0, 530, scratch.get());
          // A prompt, a chunk of 12 tokens, then single ones.
          attention_forward(job, {0, 495, 0, 495}, h, 0, 495, scratch.get());
          attention_forward(job, {495, 12, 0, 507}, h, 0, 12, scratch.get());
          for (int64_t i = 507; i < 530; ++i)
            attention_forward(job, {i, 1, 0, i + 1}, h, 0, 1, scratch.get());
        }
        CAPTURE(window);
        CAPTURE(std::string(isa_name(isa)));
        CHECK(steps.o.same_bits(whole.o));
        CHECK(std::memcmp(steps.lse.data(), whole.lse.data(), whole.lse.size() * 4) == 0);
      }
    }
  }
}

TEST_CASE("attention: what lies outside a document is not read") {
  Batch batch({2, 1, 64, 0, {70, 60}, Precision::kBf16});
  const Results want = run(batch);
  for (const int64_t row : {70, 131})
    for (Matrix* m : {&batch.q, &batch.k, &batch.v, &batch.d_o})
      for (int64_t j = 0; j < m->cols; ++j) m->set(row, j, NAN);
  CHECK(run(batch).same_bits(want));
}

TEST_CASE("attention: large scores stay finite and equal on every ISA") {
  for (const Precision p : kBoth) {
    // Scores of some thousand: all but a few P underflow, key blocks are rescaled by 0.
    const Batch batch({1, 1, 64, 0, {600}, p, Elem::kF32, 25.0f});
    Results scalar;
    {
      const UseIsa use(Isa::kScalar);
      scalar = run(batch);
    }
    const auto finite = [](const std::vector<float>& x) {
      for (const float f : x)
        if (!std::isfinite(f)) return false;
      return true;
    };
    CHECK(finite(scalar.o.f32));
    CHECK(finite(scalar.lse));
    CHECK(finite(scalar.dq.f32));
    CHECK(finite(scalar.dk.f32));
    CHECK(finite(scalar.dv.f32));
    for (const Isa isa : testable_isas()) {
      if (isa == Isa::kScalar) continue;
      CAPTURE(std::string(isa_name(isa)));
      const UseIsa use(isa);
      CHECK(run(batch).same_bits(scalar));
    }
  }
}

TEST_CASE("attention: a NaN in a row's own query shows in its results") {
  Batch batch({1, 1, 64, 0, {600}, Precision::kF32});
  batch.q.set(550, 3, NAN);
  const Results r = run(batch);
  CHECK(std::isnan(r.o.get(550, 0)));
  CHECK(std::isnan(r.lse[550]));
  CHECK(std::isfinite(r.o.get(549, 0)));
}

TEST_CASE("attention: P and dS round as bf16 operands do") {
  using scalar::V;
  // Every upper half of a significand, with the lower halves around the tie and a sample of others.
  std::vector<uint32_t> lows = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  for (uint32_t low = 3; low < 0x10000; low += 509) lows.push_back(low);
  int wrong = 0;
  for (const int exponent : {-127, -56, -55, -54, -1, 0, 99}) {
    for (uint32_t high = 0; high < 256; ++high) {  // the sign and 7 bits
      for (const uint32_t low : lows) {
        const uint32_t field = exponent < -126 ? 0 : static_cast<uint32_t>(exponent + 127);
        const uint32_t u = (high >> 7) << 31 | field << 23 | (high & 127) << 16 | low;
        float x;
        std::memcpy(&x, &u, 4);
        const float expected = bf16_round(x);
        wrong += attn::round_gradient(V::set1(x)).f[0] != expected ? 1 : 0;
        if (exponent >= -55) wrong += attn::round_prob(V::set1(x)).f[0] != expected ? 1 : 0;
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace loongforge::kernels
