// Attention forward: online softmax in key blocks, O and LSE of the rows [q0, q1) of one document
// and kv head.
//
// Per row and key block (kAttnKeyBlock keys from the document's first): m' = max(m, max_j(s_j) *
// scale), p_j = exp(fma(s_j, scale, -m')), a = exp(m - m'); l = l * a + sum p (16 lanes by key, one
// tree; p as it is, not rounded); O = O * a (under 2^-100: +0, so that no later sum is subnormal),
// then O += p V with p as an operand, keys in order. O / l and m + ln l are the results. A row
// leaves alone the blocks in which it sees no key.
#pragma once

#include "kernels/generic/attention.h"
#include "kernels/generic/math_vec.h"

namespace loongforge::kernels::attn {
namespace {

// kRounds: operands are bf16 (Precision::kBf16). kStrips: strips of a block of rows.
template <class V, class Tile, class Strided, bool kRounds, int kStrips>
struct Forward {
  using Operand = typename Tile::Operand;
  using Ops = Operands<V, Operand, kRounds>;
  using Packing = Pack<V, Tile, kRounds>;
  static constexpr int kMr = Strided::kMr, kNr = Strided::kNr;
  static constexpr int kRows = kStrips * kMr;
  static constexpr int kScoreStrips = 2;
  static constexpr int kLdS =
      kAttnKeyBlock + 16;  // no power of two: rows fall on different cache sets
  static constexpr bool kInPlace = sizeof(Operand) == sizeof(float);  // P overwrites its scores
  static constexpr float kMinusInf = -__builtin_inff();
  static_assert(kNr == Tile::kNr && kNr % 16 == 0 && kAttnKeyBlock % kNr == 0 && kMr <= 16);

  Operand* keys;     // panels of keys, K = head_dim; the first panel starts with key0
  Operand* values;   // panels of head_dim, K = keys from key0
  Operand* queries;  // [kRows][ldq]
  float* scores;     // [kRows][kLdS]
  Operand* probs;    // [kRows][kLdS]
  float* sums;       // O: [kRows][ldo]
  float* row_max;    // [kRows + 16], likewise row_sum
  float* row_sum;
  int64_t head_dim, ldq, ldo;
  int64_t key0;          // first packed key, a multiple of kNr
  int64_t values_panel;  // elements of one panel of values
  float scale;
  RowsAhead q_ahead, o_ahead;  // of the next block of rows
  bool started[kStrips];       // whether a strip's rows of `sums` hold anything yet

  size_t place(void* scratch, int64_t dim, int64_t n_keys) {
    ScratchCutter cut{static_cast<uint8_t*>(scratch)};
    head_dim = dim;
    ldq = ldo = round_up(dim, 16) + 16;
    values_panel = static_cast<int64_t>(Tile::b_panel_elems(n_keys));
    keys = cut.take<Operand>(Packing::panels_elems(n_keys, dim));
    values = cut.take<Operand>(Packing::panels_elems(dim, n_keys));
    queries = cut.take<Operand>(kRows * ldq);
    scores = cut.take<float>(kRows * kLdS);
    if constexpr (kInPlace) {
      probs = reinterpret_cast<Operand*>(scores);
    } else {
      probs = cut.take<Operand>(kRows * kLdS);
    }
    sums = cut.take<float>(kRows * ldo);
    row_max = cut.take<float>(kRows + 16);
    row_sum = cut.take<float>(kRows + 16);
    return cut.used;
  }

  static size_t scratch_bytes(const AttnJob& job, int64_t max_kv_len) {
    return Forward().place(nullptr, job.head_dim, max_kv_len);
  }

  static void run(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0, int64_t q1,
                  void* scratch) {
    if (q0 >= q1) return;
    const int64_t dim = job.head_dim, group = job.heads / job.kv_heads, head0 = kv_head * group;
    const int64_t past = doc.kv_len - doc.q_len;  // keys before the first query
    const int64_t end = past + q1;
    const int64_t first = job.window > 0 ? greater(past + q0 + 1 - job.window, 0) : 0;
    Forward self;
    self.key0 = round_down(first, kNr);
    const int64_t n_keys = end - self.key0;
    self.place(scratch, dim, n_keys);
    self.scale = job.scale;
    Packing::panels_t(Plane::at(job.k, doc.kv_row + self.key0, kv_head * dim), n_keys, dim,
                      self.keys);
    Packing::panels(Plane::at(job.v, doc.kv_row + self.key0, kv_head * dim), dim, n_keys,
                    self.values);

    if (q1 - q0 == 1) {
      for (int64_t h = 0; h < group; h += kRows) {
        const int64_t count = lesser(kRows, group - h), row = doc.q_row + q0, head = head0 + h;
        const ScoreRows rows{static_cast<int>(count), past + q0, 0, job.window, 0, doc.kv_len};
        self.block(rows, Plane::at(job.q, row, head * dim).with_ld(dim),
                   Plane::at(job.o, row, head * dim).with_ld(dim),
                   job.lse + head * job.lse_ld + row, job.lse_ld);
      }
      return;
    }
    for (int64_t h = head0; h < head0 + group; ++h) {
      for (int64_t i = q0; i < q1; i += kRows) {
        const int64_t row = doc.q_row + i;
        const ScoreRows rows{
            static_cast<int>(lesser(kRows, q1 - i)), past + i, 1, job.window, 0, doc.kv_len};
        const bool same_head = i + kRows < q1;
        if (same_head || h + 1 < head0 + group)
          self.look_ahead(job, doc, same_head ? h : h + 1, same_head ? i + kRows : q0, q1);
        self.block(rows, Plane::at(job.q, row, h * dim), Plane::at(job.o, row, h * dim),
                   job.lse + h * job.lse_ld + row, 1);
      }
    }
  }

  void look_ahead(const AttnJob& job, const AttnDoc& doc, int64_t head, int64_t query, int64_t q1) {
    const int64_t count = lesser(kRows, q1 - query);
    q_ahead = RowsAhead::of(Plane::at(job.q, doc.q_row + query, head * head_dim), head_dim, count);
    o_ahead = RowsAhead::of(Plane::at(job.o, doc.q_row + query, head * head_dim), head_dim, count);
  }

  void block(const ScoreRows& rows, const Plane& q, const Plane& o, float* lse, int64_t lse_step) {
    Packing::rows(q, rows.count, head_dim, queries, ldq);
    memset(started, 0, sizeof started);
    for (int r = 0; r < rows.count; ++r) {
      row_max[r] = kMinusInf;
      row_sum[r] = 0.0f;
    }
    for (int64_t b0 = round_down(rows.lo(0), kAttnKeyBlock); b0 < rows.hi(rows.count - 1);
         b0 += kAttnKeyBlock)
      key_block(rows, b0);
    finish(rows.count, o, lse, lse_step);
  }

  static int strip_rows(const ScoreRows& rows, int strip) {
    return static_cast<int>(lesser(kMr, rows.count - strip * kMr));
  }

  void key_block(const ScoreRows& rows, int64_t b0) {
    const int strips = (rows.count + kMr - 1) / kMr;
    Span spans[kStrips] = {};
    for (int s = 0; s < strips; ++s)
      spans[s] = Span::of(rows, s * kMr, s * kMr + strip_rows(rows, s) - 1, b0, kAttnKeyBlock);

    // A few strips at a time, so that the softmax finds their scores in L1.
    for (int s = 0; s < strips; s += kScoreStrips) {
      const int end = static_cast<int>(lesser(s + kScoreStrips, strips));
      score_strips(rows, b0, spans, s, end);
      for (int t = s; t < end; ++t)
        if (!spans[t].empty()) softmax_strip(rows, t, b0, spans[t]);
    }
    for (int64_t d = 0; d < head_dim; d += kNr) add_values(rows, b0, spans, strips, d);
    for (int s = 0; s < strips; ++s) started[s] |= !spans[s].empty();
  }

  // O += P V for kNr features.
  void add_values(const ScoreRows& rows, int64_t b0, const Span* spans, int strips, int64_t d) {
    const Operand* panel = values + d / kNr * values_panel;
    const int nr = static_cast<int>(lesser(kNr, round_up(head_dim - d, 16)));
    for (int s = 0; s < strips; ++s) {
      if (spans[s].empty()) continue;
      const int from = spans[s].lo & ~15;
      Strided::mul(strip_rows(rows, s), nr, (spans[s].hi - from + 1) / 2,
                   Ops::by_rows(probs + s * kMr * kLdS + from, kLdS),
                   panel + (b0 - key0 + from) * kNr, sums + s * kMr * ldo + d, ldo, started[s]);
    }
  }

  void score_strips(const ScoreRows& rows, int64_t b0, const Span* spans, int begin, int end) {
    const auto key_panel = static_cast<int64_t>(Tile::b_panel_elems(head_dim));
    for (int c = spans[begin].lo / kNr * kNr; c < spans[end - 1].hi; c += kNr) {
      const Operand* panel = keys + (b0 - key0 + c) / kNr * key_panel;
      for (int s = begin; s < end; ++s) {
        if (spans[s].hi <= c || spans[s].lo >= c + kNr) continue;
        const int nr = static_cast<int>(lesser(kNr, round_up_16(spans[s].hi - c)));
        q_ahead.ask(1);
        o_ahead.ask(1);
        Strided::mul(strip_rows(rows, s), nr, head_dim / 2,
                     Ops::by_rows(queries + s * kMr * ldq, ldq), panel, scores + s * kMr * kLdS + c,
                     kLdS, false);
      }
    }
  }

  // Scores of a strip to P; row_max, row_sum and O so far are brought to the new maximum. P is 0
  // around what a row sees, in all vectors of 16 that the strip sees.
  void softmax_strip(const ScoreRows& rows, int strip, int64_t b0, Span strip_span) {
    const int n = strip_rows(rows, strip);
    const int from = strip_span.lo & ~15, to = round_up_16(strip_span.hi);
    float* maxima = row_max + strip * kMr;
    float* totals = row_sum + strip * kMr;
    float previous[16] = {};
    bool rescale = false;
    for (int r = 0; r < n; ++r) {
      const int row = strip * kMr + r;
      const Span seen = Span::of(rows, row, row, b0, kAttnKeyBlock);
      previous[r] = maxima[r];
      if (seen.empty()) continue;
      const float top = max_of(scores + row * kLdS, seen.lo, seen.hi) *
                        scale;  // NaN when a score is NaN or infinite
      maxima[r] = maxima[r] > top ? maxima[r] : top;
      rescale |= totals[r] != 0.0f;
    }
    float factors[16];
    if (rescale) generic::exp(V::load_part(previous, n) - V::load_part(maxima, n)).store(factors);
    for (int r = 0; r < n; ++r) {
      const int row = strip * kMr + r;
      const Span seen = Span::of(rows, row, row, b0, kAttnKeyBlock);
      Operand* p = probs + row * kLdS;
      if (seen.empty()) {
        clear(p, from, to);
        continue;
      }
      // A row with a NaN or infinite score shows it, whatever exp_prob makes of it.
      const float bad = maxima[r] * 0.0f;
      const float sum = exp_row(scores + row * kLdS, maxima[r], seen.lo, seen.hi, p) + bad;
      clear(p, from, seen.lo & ~15);
      clear(p, round_up_16(seen.hi), to);
      if (totals[r] != 0.0f) {
        totals[r] = totals[r] * factors[r] + sum;
        rescale_row(sums + row * ldo, factors[r]);
      } else {
        totals[r] = sum;
      }
    }
  }

  static float max_of(const float* s, int lo, int hi) {
    const V low = V::set1(kMinusInf);
    V a = low, b = low, c = low, d = low;
    int j = lo & ~15;
    if (j < lo) {
      a = V::select_first(lo - j, low,
                          V::select_first(hi - j < 16 ? hi - j : 16, V::load(s + j), low));
      j += 16;
    }
    for (; j + 64 <= hi; j += 64) {
      a = V::max(a, V::load(s + j));
      b = V::max(b, V::load(s + j + 16));
      c = V::max(c, V::load(s + j + 32));
      d = V::max(d, V::load(s + j + 48));
    }
    for (; j + 16 <= hi; j += 16) a = V::max(a, V::load(s + j));
    if (j < hi) b = V::max(b, V::select_first(hi - j, V::load(s + j), low));
    return V::max(V::max(a, b), V::max(c, d)).reduce_max();
  }

  // p = exp(s * scale - top) for [lo, hi), 0 in the other lanes of the vectors touched; returns
  // their sum.
  float exp_row(const float* s, float top, int lo, int hi, Operand* p) const {
    const V factor = V::set1(scale), bias = V::set1(-top);
    V total = V::zero();
    const auto keep = [&](int j, V x) {
      total = total + x;
      Ops::store(Ops::prob(x), p + j);
    };
    const auto prob = [&](int j) { return exp_prob(V::fma(V::load(s + j), factor, bias)); };
    int j = lo & ~15;
    if (j < lo) {
      keep(j, keep_lanes(prob(j), lo - j, hi - j < 16 ? hi - j : 16));
      j += 16;
    }
    constexpr int kTogether = V::kTogether, kStep = 16 * kTogether;
    for (; j + kStep <= hi; j += kStep) {
      V x[kTogether];
#pragma GCC unroll 8
      for (int i = 0; i < kTogether; ++i) x[i] = V::fma(V::load(s + j + 16 * i), factor, bias);
      exp_probs<kTogether>(x);
#pragma GCC unroll 8
      for (int i = 0; i < kTogether; ++i) keep(j + 16 * i, x[i]);
    }
    if constexpr (kTogether > 1)
      for (; j + 16 <= hi; j += 16) keep(j, prob(j));
    if (j < hi) keep(j, keep_lanes(prob(j), 0, hi - j));
    return total.reduce_add();
  }

  void rescale_row(float* o, float factor) const {
    const V f = V::set1(factor), tiny = V::set1(0x1p-100f);
    for (int64_t d = 0; d < head_dim; d += 16) {
      const V x = V::load(o + d) * f;
      V::select_lt(V::abs(x), tiny, V::zero(), x).store(o + d);
    }
  }

  void finish(int count, const Plane& o, float* lse, int64_t lse_step) {
    const V one = V::set1(1.0f);
    for (int r0 = 0; r0 < count; r0 += 16) {
      const int n = count - r0 < 16 ? count - r0 : 16;
      const V total = V::select_first(n, V::load(row_sum + r0), one);
      float inverse[16], logs[16];
      (one / total).store(inverse);
      (V::load_part(row_max + r0, n) + natural_log(total)).store(logs);
      for (int r = 0; r < n; ++r) {
        lse[(r0 + r) * lse_step] = logs[r];
        scale_row<V>(sums + (r0 + r) * ldo, inverse[r], head_dim, o.shifted(r0 + r, 0));
      }
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels::attn
