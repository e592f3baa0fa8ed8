// Attention backward: dQ, dK and dV from q, k, v, O, LSE and dO of one document and kv head; P is
// never stored.
//
// p = exp_prob(fma(s, scale, -lse)), ds = p * (dp - delta) with dp = dO V^T and delta = sum(dO * O)
// (16 lanes by feature, one tree). P and dS become operands (bf16 under Precision::kBf16), the
// scale enters last: dQ = scale * (dS K), dK = scale * (dS^T Q), dV = P^T dO. dQ sums over its keys
// in order; dK and dV over the query heads of the group and in each over its queries in order,
// pairs of the K order counted from the document's first query. Blocks only cut these sums, so that
// their sizes and any split by queries (dQ) or keys (dK, dV) leave every bit alone.
//
// dK and dV are summed transposed, [head_dim][keys]: there P and dS are B panels, which the softmax
// writes as it goes.
#pragma once

#include "kernels/generic/attention.h"

namespace loongforge::kernels::attn {
namespace {

// What to compute: the queries and keys that take part, and which results are wanted. REQUIRES q0
// even for want_kv.
struct BackwardPart {
  int64_t q0, q1, k0, k1;
  bool want_q, want_kv;
};

// kQueries, kKeys: the block of the score matrix in work, tuned per ISA. TransposeTile: an fp32
// tile (its pack_b_t).
template <class V, class Tile, class Strided, class TransposeTile, bool kRounds, int kQueries,
          int kKeys>
struct Backward {
  using Operand = typename Tile::Operand;
  using Ops = Operands<V, Operand, kRounds>;
  using Packing = Pack<V, Tile, kRounds>;
  static constexpr int kMr = Strided::kMr, kNr = Strided::kNr, kNrT = TransposeTile::kNr;
  static constexpr int kStrips = (kQueries + kMr - 1) / kMr;
  static constexpr int kLd = kKeys + 16;  // no power of two: rows fall on different cache sets
  static constexpr int kPanel = kQueries * kNr;
  static constexpr bool kPairs = sizeof(Operand) == 2;
  static_assert(kNr == Tile::kNr && kNr % 16 == 0 && kKeys % kNr == 0 && kQueries % 2 == 0);
  static_assert(kMr % 2 == 0, "a pair of rows stands in one strip");

  // Of the kv head, keys from key0:
  Operand* keys_t;    // panels of keys, K = head_dim
  Operand* values_t;  // panels of keys, K = head_dim
  Operand* keys;      // panels of head_dim, K = keys
  float* dk_sums;     // [panel of keys][head_dim][kNr]
  float* dv_sums;
  // Of the block of queries:
  Operand *q_rows, *do_rows;    // [kQueries][ld], a row of 0 after an odd number of them
  Operand *q_pairs, *do_pairs;  // kPairs: [kQueries / 2][ld] words of two rows
  float* dq_sums;               // [kQueries][ld]
  float *delta, *lse;           // [kQueries]
  // Of the block of scores:
  float *scores, *dps;                   // [kQueries][kLd]
  Operand* dscores;                      // [kQueries][kLd]; takes the place of scores where it can
  Operand *prob_panels, *dscore_panels;  // [panel of keys]: K = queries
  float* transposed;                     // [kNr][kNrT]

  int64_t head_dim, ld;
  int64_t key0;  // a multiple of kKeys
  int64_t n_keys;
  float scale;
  BackwardPart part;
  RowsAhead ahead[3];  // q, dO and O of the next block of queries

  size_t place(void* scratch, int64_t dim, int64_t count) {
    ScratchCutter cut{static_cast<uint8_t*>(scratch)};
    head_dim = dim;
    n_keys = count;
    ld = round_up(dim, 16) + 16;
    keys_t = cut.take<Operand>(Packing::panels_elems(n_keys, dim));
    values_t = cut.take<Operand>(Packing::panels_elems(n_keys, dim));
    keys = cut.take<Operand>(Packing::panels_elems(dim, n_keys));
    dk_sums = cut.take<float>(round_up(n_keys, kNr) * dim);
    dv_sums = cut.take<float>(round_up(n_keys, kNr) * dim);
    q_rows = cut.take<Operand>(kQueries * ld);
    do_rows = cut.take<Operand>(kQueries * ld);
    q_pairs = kPairs ? cut.take<Operand>(kQueries * ld) : q_rows;
    do_pairs = kPairs ? cut.take<Operand>(kQueries * ld) : do_rows;
    dq_sums = cut.take<float>(kQueries * ld);
    delta = cut.take<float>(kQueries);
    lse = cut.take<float>(kQueries);
    scores = cut.take<float>(kQueries * kLd);
    dps = cut.take<float>(kQueries * kLd);
    dscores = kPairs ? cut.take<Operand>(kQueries * kLd) : reinterpret_cast<Operand*>(scores);
    prob_panels = cut.take<Operand>(kKeys / kNr * kPanel);
    dscore_panels = cut.take<Operand>(kKeys / kNr * kPanel);
    transposed = cut.take<float>(static_cast<int64_t>(TransposeTile::b_panel_elems(kNr)));
    return cut.used;
  }

  static size_t scratch_bytes(const AttnJob& job, int64_t max_kv_len) {
    return Backward().place(nullptr, job.head_dim, max_kv_len);
  }

  static void run(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, const BackwardPart& part,
                  void* scratch) {
    if (part.q0 >= part.q1 || part.k0 >= part.k1) return;
    const int64_t dim = job.head_dim, group = job.heads / job.kv_heads;
    const ScoreRows all{
        static_cast<int>(part.q1 - part.q0), part.q0, 1, job.window, part.k0, part.k1};
    Backward self;
    self.part = part;
    self.key0 = round_down(all.lo(0), kKeys);
    self.place(scratch, dim, all.hi(all.count - 1) - self.key0);
    self.scale = job.scale;
    const Plane k = Plane::at(job.k, doc.kv_row + self.key0, kv_head * dim);
    Packing::panels_t(k, self.n_keys, dim, self.keys_t);
    Packing::panels_t(Plane::at(job.v, doc.kv_row + self.key0, kv_head * dim), self.n_keys, dim,
                      self.values_t);
    if (part.want_q) Packing::panels(k, dim, self.n_keys, self.keys);
    if (part.want_kv) {
      const size_t bytes = sizeof(float) * static_cast<size_t>(round_up(self.n_keys, kNr) * dim);
      memset(self.dk_sums, 0, bytes);
      memset(self.dv_sums, 0, bytes);
    }
    const int64_t last_head = (kv_head + 1) * group - 1;
    for (int64_t h = kv_head * group; h <= last_head; ++h) {
      for (int64_t i = part.q0; i < part.q1; i += kQueries) {
        if (i + kQueries < part.q1) {
          self.look_ahead(job, doc, h, i + kQueries);
        } else if (h < last_head) {
          self.look_ahead(job, doc, h + 1, part.q0);
        }
        self.query_block(job, doc, h, i, static_cast<int>(lesser(kQueries, part.q1 - i)));
      }
    }
    if (part.want_kv) {
      self.store_keys(self.dk_sums, self.scale, Plane::at(job.dk, doc.kv_row, kv_head * dim));
      self.store_keys(self.dv_sums, 1.0f, Plane::at(job.dv, doc.kv_row, kv_head * dim));
    }
  }

  void look_ahead(const AttnJob& job, const AttnDoc& doc, int64_t head, int64_t query) {
    const int64_t row = doc.q_row + query, col = head * head_dim,
                  count = lesser(kQueries, part.q1 - query);
    ahead[0] = RowsAhead::of(Plane::at(job.q, row, col), head_dim, count);
    ahead[1] = RowsAhead::of(Plane::at(job.d_o, row, col), head_dim, count);
    ahead[2] = RowsAhead::of(Plane::at(job.o_saved, row, col), head_dim, count);
  }

  void query_block(const AttnJob& job, const AttnDoc& doc, int64_t head, int64_t query, int count) {
    const int64_t row = doc.q_row + query, col = head * head_dim;
    const Plane d_o = Plane::at(job.d_o, row, col), o = Plane::at(job.o_saved, row, col);
    take_rows(Plane::at(job.q, row, col), count, q_rows, q_pairs);
    take_rows(d_o, count, do_rows, do_pairs);
    for (int r = 0; r < count; ++r) delta[r] = dot_row(d_o.shifted(r, 0), o.shifted(r, 0));
    memcpy(lse, job.lse + head * job.lse_ld + row, sizeof(float) * static_cast<size_t>(count));
    if (part.want_q) memset(dq_sums, 0, sizeof(float) * static_cast<size_t>(count * ld));

    const ScoreRows rows{count, query, 1, job.window, part.k0, part.k1};
    for (int64_t b0 = round_down(rows.lo(0), kKeys); b0 < rows.hi(count - 1); b0 += kKeys)
      score_block(rows, b0);

    if (!part.want_q) return;
    const Plane dq = Plane::at(job.dq, row, col);
    for (int r = 0; r < count; ++r)
      scale_row<V>(dq_sums + r * ld, scale, head_dim, dq.shifted(r, 0));
  }

  // Rows as operands, and as pairs where columns are needed in pairs.
  void take_rows(const Plane& src, int count, Operand* rows, Operand* pairs) const {
    Packing::rows(src, count, head_dim, rows, ld);
    if (count % 2 != 0) clear(rows + count * ld, 0, static_cast<int>(ld));
    if constexpr (kPairs) {
      for (int r = 0; r < count; r += 2)
        for (int d = 0; d < head_dim; d += 16)
          Ops::template store_pair<0>(V::load(rows + r * ld + d), V::load(rows + (r + 1) * ld + d),
                                      pairs + r * ld, d);
    }
  }
  // A(i, k) = row k's feature i, from the even row `from` on.
  StridedA columns(const Operand* pairs, int from) const {
    const Operand* at = pairs + from * ld;
    return kPairs ? StridedA{at, 1, ld, 0, 0} : StridedA{at, 1, 2 * ld, ld, 0};
  }
  static StridedA shifted(const StridedA& a, int64_t words) {
    return {static_cast<const float*>(a.data) + words, a.row, a.step, a.odd, a.even};
  }

  // delta: dO as the operand that it is in dp.
  float dot_row(const Plane& a, const Plane& b) const {
    V sum = V::zero();
    a.typed([&](auto* x) {
      b.typed([&](auto* y) {
        for (int64_t i = 0; i < head_dim; i += 16) {
          V left = load_up_to<V>(x + i, head_dim - i);
          if constexpr (kRounds) left = left.to_bf16();
          sum = V::fma(left, load_up_to<V>(y + i, head_dim - i), sum);
        }
      });
    });
    return sum.reduce_add();
  }

  static int strip_rows(const ScoreRows& rows, int strip) {
    return static_cast<int>(lesser(kMr, rows.count - strip * kMr));
  }

  void score_block(const ScoreRows& rows, int64_t b0) {
    const int strips = (rows.count + kMr - 1) / kMr;
    Span spans[kStrips] = {};
    for (int s = 0; s < strips; ++s)
      spans[s] = Span::of(rows, s * kMr, s * kMr + strip_rows(rows, s) - 1, b0, kKeys);
    const int begin = spans[0].lo / kNr * kNr, end = spans[strips - 1].hi;

    // A panel of keys, then of values, so that each stays in L1 for all strips.
    for (int c = begin; c < end; c += kNr) {
      products(rows, spans, strips, b0, c, q_rows, keys_t, scores);
      products(rows, spans, strips, b0, c, do_rows, values_t, dps);
    }
    for (int s = 0; s < strips; ++s) {
      if (spans[s].empty()) continue;
      for (int r = s * kMr; r < s * kMr + strip_rows(rows, s); r += 2)
        prob_pair(rows, r, b0, spans[s]);
    }
    if (part.want_kv)
      for (int c = begin; c < end; c += kNr) add_to_keys(rows, b0, c);
    if (part.want_q)
      for (int s = 0; s < strips; ++s)
        if (!spans[s].empty()) add_to_queries(strip_rows(rows, s), s, b0, spans[s]);
  }

  // The strips that see keys [b0 + c, b0 + c + kNr), times that panel.
  void products(const ScoreRows& rows, const Span* spans, int strips, int64_t b0, int c,
                const Operand* left, const Operand* panels, float* out) {
    const Operand* panel =
        panels + (b0 - key0 + c) / kNr * static_cast<int64_t>(Tile::b_panel_elems(head_dim));
    for (int s = 0; s < strips; ++s) {
      if (spans[s].hi <= c || spans[s].lo >= c + kNr) continue;
      for (RowsAhead& a : ahead) a.ask(1);
      Strided::mul(strip_rows(rows, s), static_cast<int>(lesser(kNr, round_up_16(spans[s].hi - c))),
                   head_dim / 2, Ops::by_rows(left + s * kMr * ld, ld), panel,
                   out + static_cast<int64_t>(s) * kMr * kLd + c, kLd, false);
    }
  }

  // One row of the pair at work: its constants and what it sees of the block.
  struct RowState {
    const float *s, *dp;
    V bias, delta;
    Operand* ds;
    Span seen;
  };
  RowState row_state(const ScoreRows& rows, int r, int64_t b0) const {
    RowState row;
    row.s = scores + r * kLd;
    row.dp = dps + r * kLd;
    row.bias = V::set1(-lse[r]);
    row.delta = V::set1(delta[r]);
    row.ds = dscores + r * kLd;
    row.seen = Span::of(rows, r, r, b0, kKeys);
    return row;
  }
  struct Pair {
    V p, ds;
  };
  LF_INLINE Pair whole(const RowState& row, V factor, int j) const {
    const V p = exp_prob(V::fma(V::load(row.s + j), factor, row.bias));
    return {p, p * (V::load(row.dp + j) - row.delta)};
  }
  Pair part_of(const RowState& row, V factor, int j) const {
    if (row.seen.lo >= j + 16 || row.seen.hi <= j || row.seen.empty())
      return {V::zero(), V::zero()};
    const int from = row.seen.lo > j ? row.seen.lo - j : 0,
              to = row.seen.hi < j + 16 ? row.seen.hi - j : 16;
    const Pair x = whole(row, factor, j);
    return {keep_lanes(x.p, from, to), keep_lanes(x.ds, from, to)};
  }

  // P and dS of rows r and r + 1 (none after the last), 0 around what they see, in all panels that
  // the strip sees.
  void prob_pair(const ScoreRows& rows, int r, int64_t b0, Span strip_span) {
    const int from = strip_span.lo / kNr * kNr, to = static_cast<int>(round_up(strip_span.hi, kNr));
    const bool two = r + 1 < rows.count;
    const RowState even = row_state(rows, r, b0);
    RowState odd = even;
    if (two) odd = row_state(rows, r + 1, b0);
    if (!two) odd.seen = Span{};
    const V factor = V::set1(scale);
    const auto keep = [&](int j, const Pair& x, const Pair& y) {
      const int64_t at = static_cast<int64_t>(j / kNr) * kPanel + static_cast<int64_t>(r) * kNr;
      const V ds = Ops::gradient(x.ds), ds_odd = Ops::gradient(y.ds);
      if (part.want_kv) {
        Ops::template store_pair<kNr>(Ops::prob(x.p), Ops::prob(y.p), prob_panels + at, j % kNr);
        Ops::template store_pair<kNr>(ds, ds_odd, dscore_panels + at, j % kNr);
      }
      if (part.want_q) {
        Ops::store(ds, even.ds + j);
        if (two) Ops::store(ds_odd, odd.ds + j);
      }
    };
    // Vectors that both rows see as a whole.
    const int full_lo = static_cast<int>(lesser(to, greater(from, round_up_16(odd.seen.lo))));
    const int full_hi = static_cast<int>(greater(full_lo, lesser(even.seen.hi, odd.seen.hi) & ~15));
    int j = from;
    for (; j < full_lo; j += 16) keep(j, part_of(even, factor, j), part_of(odd, factor, j));
    for (; j < full_hi; j += 16) keep(j, whole(even, factor, j), whole(odd, factor, j));
    for (; j < to; j += 16) keep(j, part_of(even, factor, j), part_of(odd, factor, j));
  }

  // dV^T += dO^T P and dK^T += Q^T dS for the panel of keys at b0 + c.
  void add_to_keys(const ScoreRows& rows, int64_t b0, int c) {
    const int64_t first_key = b0 + c;
    const int64_t last_key = lesser(first_key + kNr, rows.key1) - 1;
    // Rows outside [from, last) see no key of the panel.
    const int from = static_cast<int>(round_down(greater(first_key - rows.position, 0), 2));
    int64_t last = rows.count;
    if (rows.window > 0) last = lesser(last, last_key + rows.window - rows.position);
    if (last <= from) return;
    const auto rows_end = static_cast<int>(last);
    if constexpr (kNr > 32) {
      // The first rows of a panel on the diagonal see only the first half of its keys.
      const int half = static_cast<int>(lesser(first_key + kNr / 2 - rows.position, last));
      if (half > from) {
        add_rows_to_keys(first_key, c, from, half, kNr / 2);
        add_rows_to_keys(first_key, c, half, rows_end, kNr);
        return;
      }
    }
    add_rows_to_keys(first_key, c, from, rows_end, kNr);
  }
  // The part of query rows [from, to) in the first nr keys. REQUIRES from even.
  void add_rows_to_keys(int64_t first_key, int c, int from, int to, int nr) {
    if (to <= from) return;
    const int64_t pairs = (to - from + 1) / 2;
    const int64_t b = static_cast<int64_t>(c / kNr) * kPanel + static_cast<int64_t>(from) * kNr;
    const int64_t sums = (first_key - key0) * head_dim;
    // All of dV, then all of dK, so that a panel of P or dS stays in L1.
    add_columns(columns(do_pairs, from), nr, pairs, prob_panels + b, dv_sums + sums);
    add_columns(columns(q_pairs, from), nr, pairs, dscore_panels + b, dk_sums + sums);
  }
  void add_columns(const StridedA& a, int nr, int64_t pairs, const Operand* b, float* sums) {
    for (int64_t d = 0; d < head_dim; d += kMr)
      Strided::mul(static_cast<int>(lesser(kMr, head_dim - d)), nr, pairs, shifted(a, d), b,
                   sums + d * kNr, kNr, true);
  }

  // dQ += dS K for a strip of queries.
  void add_to_queries(int mr, int strip, int64_t b0, Span strip_span) {
    const int from = strip_span.lo & ~15;
    const auto panel_elems = static_cast<int64_t>(Tile::b_panel_elems(n_keys));
    const StridedA ds = Ops::by_rows(dscores + static_cast<int64_t>(strip) * kMr * kLd + from, kLd);
    for (int64_t d = 0; d < head_dim; d += kNr) {
      const Operand* panel = keys + d / kNr * panel_elems + (b0 - key0 + from) * kNr;
      const int nr = static_cast<int>(lesser(kNr, round_up(head_dim - d, 16)));
      Strided::mul(mr, nr, (strip_span.hi - from + 1) / 2, ds, panel,
                   dq_sums + strip * kMr * ld + d, ld, true);
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
          scale_row<V>(transposed + (j ^ 1) * kNrT, factor, width, out.shifted(key + j, d));
      }
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels::attn
