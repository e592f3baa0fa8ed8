// Attention backward: dQ, dK and dV from q, k, v, O, LSE and dO of one document and kv head; P is
// never stored.
//
// p = exp(fma(s, scale, -lse)), ds = p * (dp - delta) with dp = dO V^T and delta = sum(dO * O) (16
// lanes by feature, one tree). P and dS become operands (bf16 under Precision::kBf16), the scale
// enters last: dQ = scale * (dS K), dK = scale * (dS^T Q), dV = P^T dO. dQ sums over its keys in
// order; dK and dV over the query heads of the group and in each over its queries in order, pairs
// of the K order counted from the document's first query. Blocks only cut these sums, so that their
// sizes and any split by queries (dQ) or keys (dK, dV) leave every bit alone.
//
// dK and dV are summed transposed, [head_dim][keys]: there P and dS are B panels, whose packing
// only interleaves rows.
#pragma once

#include "kernels/generic/attention.h"
#include "kernels/generic/math_vec.h"

namespace loongforge::kernels {
namespace {

// What to compute: the queries and keys that take part, and which results are wanted. REQUIRES q0
// even for want_kv.
struct BackwardPart {
  int64_t q0, q1, k0, k1;
  bool want_q, want_kv;
};

// kQueries, kKeys: the block of the score matrix in work, tuned per ISA. TransposeTile: an fp32
// tile (its pack_b_t).
template <class V, class Tile, class TransposeTile, bool kRounded, int kQueries, int kKeys>
struct AttnBackward {
  using Operand = typename Tile::Operand;
  using Prob = typename ProbElem<kRounded>::Type;
  using Pack = Packer<Tile>;
  static constexpr int kMr = Tile::kMr, kNr = Tile::kNr, kNrT = TransposeTile::kNr;
  static constexpr int kStrips = (kQueries + kMr - 1) / kMr;
  static constexpr int kLd = kKeys + 16;  // no power of two: rows fall on different cache sets
  static_assert(kNr % 16 == 0 && kKeys % kNr == 0 && kQueries % 2 == 0 && kMr <= 16);

  // Of the kv head, keys from key0:
  Operand* keys_t;    // panels of keys, K = head_dim
  Operand* values_t;  // panels of keys, K = head_dim
  Operand* keys;      // panels of head_dim, K = keys
  float* dk_sums;     // [panel of keys][head_dim][kNr]
  float* dv_sums;
  // Of the block of queries:
  Operand *q_strips, *do_strips;    // strips of queries, K = head_dim
  Operand *q_columns, *do_columns;  // strips of head_dim, K = queries
  float* dq_sums;                   // [kQueries][ldq]
  float *delta, *lse;               // [kQueries]
  // Of the block of scores:
  float *scores, *dps;                 // [kQueries][kLd]
  Prob *probs, *dscores;               // [kQueries][kLd]
  Operand *prob_panel, *dscore_panel;  // one panel of keys, K = queries
  Operand* dscore_strip;               // one strip of queries, K = keys
  float* transposed;                   // [kNr][kNrT]

  int64_t head_dim, ldq;
  int64_t key0;  // a multiple of kKeys
  int64_t n_keys;
  float scale;
  BackwardPart part;

  size_t place(void* scratch, int64_t dim, int64_t count) {
    ScratchCutter cut{static_cast<uint8_t*>(scratch)};
    head_dim = dim;
    n_keys = count;
    ldq = round_up(dim, kNr) + 16;
    keys_t = cut.take<Operand>(Pack::panels_elems(n_keys, dim));
    values_t = cut.take<Operand>(Pack::panels_elems(n_keys, dim));
    keys = cut.take<Operand>(Pack::panels_elems(dim, n_keys));
    dk_sums = cut.take<float>(round_up(n_keys, kNr) * dim);
    dv_sums = cut.take<float>(round_up(n_keys, kNr) * dim);
    q_strips = cut.take<Operand>(Pack::strips_elems(kQueries, dim));
    do_strips = cut.take<Operand>(Pack::strips_elems(kQueries, dim));
    q_columns = cut.take<Operand>(Pack::strips_elems(dim, kQueries));
    do_columns = cut.take<Operand>(Pack::strips_elems(dim, kQueries));
    dq_sums = cut.take<float>(kQueries * ldq);
    delta = cut.take<float>(kQueries);
    lse = cut.take<float>(kQueries);
    scores = cut.take<float>(kQueries * kLd);
    dps = cut.take<float>(kQueries * kLd);
    probs = cut.take<Prob>(kQueries * kLd);
    dscores = cut.take<Prob>(kQueries * kLd);
    prob_panel = cut.take<Operand>(static_cast<int64_t>(Tile::b_panel_elems(kQueries)));
    dscore_panel = cut.take<Operand>(static_cast<int64_t>(Tile::b_panel_elems(kQueries)));
    dscore_strip = cut.take<Operand>(static_cast<int64_t>(Tile::a_panel_elems(kKeys)));
    transposed = cut.take<float>(static_cast<int64_t>(TransposeTile::b_panel_elems(kNr)));
    return cut.used;
  }

  static size_t scratch_bytes(const AttnJob& job, int64_t max_kv_len) {
    return AttnBackward().place(nullptr, job.head_dim, max_kv_len);
  }

  static void run(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, const BackwardPart& part,
                  void* scratch) {
    if (part.q0 >= part.q1 || part.k0 >= part.k1) return;
    const int64_t dim = job.head_dim, group = job.heads / job.kv_heads;
    const ScoreRows all{
        static_cast<int>(part.q1 - part.q0), part.q0, 1, job.window, part.k0, part.k1};
    AttnBackward self;
    self.part = part;
    self.key0 = round_down(all.lo(0), kKeys);
    self.place(scratch, dim, all.hi(all.count - 1) - self.key0);
    self.scale = job.scale;
    const Plane k = Plane::at(job.k, doc.kv_row + self.key0, kv_head * dim);
    Pack::panels_t(k, self.n_keys, dim, self.keys_t);
    Pack::panels_t(Plane::at(job.v, doc.kv_row + self.key0, kv_head * dim), self.n_keys, dim,
                   self.values_t);
    if (part.want_q) Pack::panels(k, dim, self.n_keys, self.keys);
    if (part.want_kv) {
      const size_t bytes = sizeof(float) * static_cast<size_t>(round_up(self.n_keys, kNr) * dim);
      memset(self.dk_sums, 0, bytes);
      memset(self.dv_sums, 0, bytes);
    }
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
      for (int64_t i = part.q0; i < part.q1; i += kQueries)
        self.query_block(job, doc, h, i, static_cast<int>(lesser(kQueries, part.q1 - i)));
    if (part.want_kv) {
      self.store_keys(self.dk_sums, self.scale, Plane::at(job.dk, doc.kv_row, kv_head * dim));
      self.store_keys(self.dv_sums, 1.0f, Plane::at(job.dv, doc.kv_row, kv_head * dim));
    }
  }

  void query_block(const AttnJob& job, const AttnDoc& doc, int64_t head, int64_t query, int count) {
    const int64_t row = doc.q_row + query, col = head * head_dim;
    const Plane q = Plane::at(job.q, row, col), d_o = Plane::at(job.d_o, row, col);
    Pack::strips(q, count, head_dim, q_strips);
    Pack::strips(d_o, count, head_dim, do_strips);
    if (part.want_kv) {
      Pack::strips_t(q, head_dim, count, q_columns);
      Pack::strips_t(d_o, head_dim, count, do_columns);
    }
    const Plane o = Plane::at(job.o_saved, row, col);
    for (int r = 0; r < count; ++r) delta[r] = dot_row(d_o.shifted(r, 0), o.shifted(r, 0));
    memcpy(lse, job.lse + head * job.lse_ld + row, sizeof(float) * static_cast<size_t>(count));
    if (part.want_q) memset(dq_sums, 0, sizeof(float) * static_cast<size_t>(count * ldq));

    const ScoreRows rows{count, query, 1, job.window, part.k0, part.k1};
    for (int64_t b0 = round_down(rows.lo(0), kKeys); b0 < rows.hi(count - 1); b0 += kKeys)
      score_block(rows, b0);

    if (!part.want_q) return;
    const Plane dq = Plane::at(job.dq, row, col);
    for (int r = 0; r < count; ++r)
      scale_row<V>(dq_sums + r * ldq, scale, head_dim, dq.shifted(r, 0).out(), dq.elem);
  }

  // delta: dO as the operand that it is in dp.
  float dot_row(const Plane& a, const Plane& b) const {
    V sum = V::zero();
    for (int64_t i = 0; i < head_dim; i += 16) {
      const int n = static_cast<int>(lesser(16, head_dim - i));
      V x = load_n<V>(a.data, a.elem, i, n);
      if constexpr (kRounded) x = x.to_bf16();
      sum = V::fma(x, load_n<V>(b.data, b.elem, i, n), sum);
    }
    return sum.reduce_add();
  }

  // The keys of the block at b0 that rows first .. last see, relative to b0.
  struct Span {
    int lo, hi;
    bool empty() const { return lo >= hi; }
  };
  static Span span(const ScoreRows& rows, int first, int last, int64_t b0) {
    return {static_cast<int>(greater(rows.lo(first) - b0, 0)),
            static_cast<int>(lesser(rows.hi(last) - b0, kKeys))};
  }
  static int strip_rows(const ScoreRows& rows, int strip) {
    return static_cast<int>(lesser(kMr, rows.count - strip * kMr));
  }

  void score_block(const ScoreRows& rows, int64_t b0) {
    const int strips = (rows.count + kMr - 1) / kMr;
    Span spans[kStrips] = {};
    for (int s = 0; s < strips; ++s)
      spans[s] = span(rows, s * kMr, s * kMr + strip_rows(rows, s) - 1, b0);
    const int begin = spans[0].lo / kNr * kNr, end = spans[strips - 1].hi;

    const auto strip_elems = static_cast<int64_t>(Tile::a_panel_elems(head_dim));
    for (int c = begin; c < end; c += kNr) {
      const int64_t panel =
          (b0 - key0 + c) / kNr * static_cast<int64_t>(Tile::b_panel_elems(head_dim));
      for (int s = 0; s < strips; ++s) {
        if (spans[s].hi <= c || spans[s].lo >= c + kNr) continue;
        const int mr = strip_rows(rows, s);
        const int64_t at = static_cast<int64_t>(s) * kMr * kLd + c;
        Tile::mul(mr, kNr, head_dim, q_strips + s * strip_elems, keys_t + panel, scores + at, kLd,
                  false);
        Tile::mul(mr, kNr, head_dim, do_strips + s * strip_elems, values_t + panel, dps + at, kLd,
                  false);
      }
    }
    for (int s = 0; s < strips; ++s)
      if (!spans[s].empty()) prob_strip(rows, s, b0, spans[s]);
    if (part.want_kv)
      for (int c = begin; c < end; c += kNr) add_to_keys(rows, b0, c);
    if (part.want_q)
      for (int s = 0; s < strips; ++s)
        if (!spans[s].empty()) add_to_queries(strip_rows(rows, s), s, b0, spans[s]);
  }

  // P and dS of a strip, with zeros up to the panel edges around what the strip sees.
  void prob_strip(const ScoreRows& rows, int strip, int64_t b0, Span strip_span) {
    const int from = strip_span.lo / kNr * kNr, to = (strip_span.hi + kNr - 1) / kNr * kNr;
    for (int r = strip * kMr; r < strip * kMr + strip_rows(rows, strip); ++r) {
      const Span seen = span(rows, r, r, b0);
      Prob* p = probs + r * kLd;
      Prob* ds = dscores + r * kLd;
      if (seen.empty()) {
        clear(p, from, to);
        clear(ds, from, to);
        continue;
      }
      prob_row(r, seen.lo, seen.hi, p, ds);
      const int before = seen.lo & ~15, after = (seen.hi + 15) & ~15;
      clear(p, from, before);
      clear(ds, from, before);
      clear(p, after, to);
      clear(ds, after, to);
    }
  }

  void prob_row(int r, int lo, int hi, Prob* p, Prob* ds) const {
    const float *s = scores + r * kLd, *dp = dps + r * kLd;
    const V factor = V::set1(scale), bias = V::set1(-lse[r]), shift = V::set1(delta[r]);
    const auto prob = [&](int j) { return generic::exp(V::fma(V::load(s + j), factor, bias)); };
    const auto keep = [&](int j, V x) {
      x.store(p + j);
      (x * (V::load(dp + j) - shift)).store(ds + j);
    };
    for_vectors(
        lo, hi, [&](int j) { keep(j, prob(j)); },
        [&](int j, int a, int b) { keep(j, keep_lanes(prob(j), a, b, V::zero())); });
  }

  // dV^T += dO^T P and dK^T += Q^T dS for the panel of keys at b0 + c.
  void add_to_keys(const ScoreRows& rows, int64_t b0, int c) {
    const int64_t first_key = b0 + c;
    const int64_t last_key = lesser(first_key + kNr, rows.key1) - 1;
    // Rows outside [from, last) see no key of the panel.
    const int from = static_cast<int>(round_down(greater(first_key - rows.position, 0), 2));
    int64_t last = rows.count;
    if (rows.window > 0) last = lesser(last, last_key + rows.window - rows.position);
    const int k = static_cast<int>(last) - from;
    if (k <= 0) return;
    const int64_t row = static_cast<int64_t>(from) * kLd + c;
    Tile::pack_b(probs + row, kLd, kNr, k, prob_panel);
    Tile::pack_b(dscores + row, kLd, kNr, k, dscore_panel);
    const int64_t panel = (first_key - key0) * head_dim;
    const auto column_elems = static_cast<int64_t>(Tile::a_panel_elems(rows.count));
    for (int64_t d = 0; d < head_dim; d += kMr) {
      const int mr = static_cast<int>(lesser(kMr, head_dim - d));
      const int64_t a = d / kMr * column_elems + static_cast<int64_t>(from) * kMr;
      Tile::mul(mr, kNr, k, do_columns + a, prob_panel, dv_sums + panel + d * kNr, kNr, true);
      Tile::mul(mr, kNr, k, q_columns + a, dscore_panel, dk_sums + panel + d * kNr, kNr, true);
    }
  }

  // dQ += dS K for a strip of queries.
  void add_to_queries(int mr, int strip, int64_t b0, Span strip_span) {
    const int from = strip_span.lo & ~15, k = strip_span.hi - from;
    Tile::pack_a(dscores + static_cast<int64_t>(strip) * kMr * kLd + from, kLd, mr, k,
                 dscore_strip);
    const auto panel_elems = static_cast<int64_t>(Tile::b_panel_elems(n_keys));
    for (int64_t d = 0; d < head_dim; d += kNr) {
      const Operand* panel = keys + d / kNr * panel_elems + (b0 - key0 + from) * kNr;
      Tile::mul(mr, kNr, k, dscore_strip, panel, dq_sums + strip * kMr * ldq + d, ldq, true);
    }
  }

  // Rows [k0, k1) of dK or dV from sums [panel][head_dim][kNr]; `out` is the document's first row.
  void store_keys(const float* sums, float factor, const Plane& out) {
    for (int64_t key = round_down(part.k0, kNr); key < part.k1; key += kNr) {
      const float* panel = sums + (key - key0) * head_dim;
      for (int64_t d = 0; d < head_dim; d += kNrT) {
        const int64_t width = lesser(kNrT, head_dim - d);
        // As packed fp32 panels stand: element (column i, row kk) at (kk ^ 1) * kNrT + i.
        TransposeTile::pack_b_t(panel + d * kNr, kNr, static_cast<int>(width), kNr, transposed);
        for (int64_t j = greater(part.k0 - key, 0); j < lesser(kNr, part.k1 - key); ++j)
          scale_row<V>(transposed + (j ^ 1) * kNrT, factor, width, out.shifted(key + j, d).out(),
                       out.elem);
      }
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels
