// Speed of what walks over memory once, against the same walk without arithmetic: the FP8
// quantiser, AdamW, and cross-entropy beside the two products of its chunk.
#include <cstdio>
#include <random>
#include <vector>

#include "bench.h"
#include "bench/options.h"
#include "kernels/gemm.h"
#include "kernels/optim.h"
#include "kernels/quant.h"
#include "kernels/rows.h"
#include "quiet.h"

namespace {

using namespace loongforge;
using namespace loongforge::kernels;
using namespace loongforge::bench;

constexpr const char* kQuantiseFp32 = "quantise fp32, memory";
constexpr const char* kQuantiseBf16 = "quantise bf16, memory";
constexpr const char* kQuantiseCache = "quantise fp32, cache";  // of one thread only
constexpr const char* kAdamw = "AdamW fp32";
constexpr const char* kCrossEntropy = "cross-entropy, head chunk";

void fill(float* x, int64_t n, unsigned seed) {
  std::minstd_rand rng(seed);
  for (int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(static_cast<int>(rng() & 0xFFFF) - 32768) * 0x1p-16f;
}

// What a row reached: a share of a limit, or a rate; judged where nobody else used the CPUs.
void print_row(const char* name, double rate, const char* unit, double reached, const char* of,
               double bar, const OthersLoad& load) {
  std::printf("  %-28s %8.1f %-9s %6.2f %s", name, rate, unit, reached, of);
  const double others = load.share();
  if (bar <= 0) {
    std::printf("\n");
  } else if (others > OthersLoad::kLimit) {
    std::printf("  [not judged: others took %.0f %% of the CPUs]\n", others * 100);
  } else {
    std::printf("  [%.2f %s]\n", bar, reached >= bar ? "met" : "MISSED");
  }
  std::fflush(stdout);
}

// Reads all of it in one stream.
void read_once(const uint8_t* p, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, p + i, 64);
    for (const uint64_t w : words) sum ^= w;
  }
  volatile uint64_t sink = sum;
  (void)sink;
}

void quantiser_from_memory(ThreadPool& pool, Elem from, const RowOptions& options) {
  constexpr int64_t kRows = 16384, kCols = 4096;
  const int64_t bytes = elem_bytes(from);
  AlignedBuffer x(static_cast<size_t>(kRows * kCols * bytes), Pages::kTransparent);
  AlignedBuffer codes(static_cast<size_t>(kRows * kCols), Pages::kTransparent);
  std::vector<int8_t> exps(static_cast<size_t>(kRows * kCols / kFeatureBlock));
  if (from == Elem::kF32) {
    fill(reinterpret_cast<float*>(x.data()), kRows * kCols, 1);
  } else {
    std::vector<float> row(kCols);
    for (int64_t i = 0; i < kRows; ++i) {
      fill(row.data(), kCols, static_cast<unsigned>(i + 1));
      cast(row.data(), Elem::kF32, x.data() + i * kCols * 2, Elem::kBf16, kCols, true);
    }
  }
  std::memset(codes.data(), 1, codes.size());
  Rounds rounds;
  const int threads = pool.threads();
  const size_t read = rounds.add("read", [&] {
    const double seconds = run_timed(pool, threads, [&](int64_t task, int) {
      const size_t part = x.size() / static_cast<size_t>(threads);
      read_once(x.data() + static_cast<size_t>(task) * part, part);
    });
    return static_cast<double>(x.size()) / seconds * 1e-9;
  });
  const size_t row = rounds.add("quantise", [&] {
    std::vector<QuantCounts> counts(static_cast<size_t>(threads));
    const double seconds = run_timed(pool, threads, [&](int64_t task, int) {
      quantize_rows(Elem::kE4M3, Mat{x.data(), kCols, from}, kCols, 1.0f, codes.data(), kCols,
                    exps.data(), kCols / kFeatureBlock, &counts[static_cast<size_t>(task)],
                    kRows * task / threads, kRows * (task + 1) / threads);
    });
    return static_cast<double>(kRows * kCols * (bytes + 1)) / seconds * 1e-9;
  });
  const OthersLoad load;
  rounds.run(options.rounds);
  print_row(from == Elem::kF32 ? kQuantiseFp32 : kQuantiseBf16, rounds.best(row), "GB/s",
            rounds.median_ratio(row, {read}), "of reading in one stream",
            from == Elem::kF32 ? 0.92 : 0, load);
}

void quantiser_in_cache(ThreadPool& pool, Isa isa, const RowOptions& options) {
  constexpr int64_t kRows = 8, kCols = 1024;
  std::vector<float> x(kRows * kCols);
  std::vector<uint8_t> codes(kRows * kCols);
  std::vector<int8_t> exps(kRows * kCols / kFeatureBlock);
  fill(x.data(), kRows * kCols, 1);
  Rounds rounds;
  const FmaKind kind = fma_kinds(isa, Precision::kF32)[0];
  const size_t peak = rounds.add("peak", [&] { return fma_peak(pool, kind); });
  const size_t row = rounds.add("quantise", [&] {
    constexpr int kRepeats = 500;
    const double seconds = run_timed(pool, 1, [&](int64_t, int) {
      QuantCounts counts;
      for (int i = 0; i < kRepeats; ++i)
        quantize_rows(Elem::kE4M3, Mat{x.data(), kCols, Elem::kF32}, kCols, 1.0f, codes.data(),
                      kCols, exps.data(), kCols / kFeatureBlock, &counts, 0, kRows);
    });
    return kRepeats * static_cast<double>(kRows * kCols) / (seconds * pool.threads()) * 1e-9;
  });
  const OthersLoad load;
  rounds.run(options.rounds);
  // Elements a cycle where the FMA peak is two instructions a cycle: the clock is not known.
  const double cycles = rounds.best(peak) / (2 * fma_flops(kind));
  std::printf("  %-28s %8.2f G elem/s %5.2f elements a cycle%s\n", kQuantiseCache, rounds.best(row),
              rounds.best(row) / cycles,
              load.share() > OthersLoad::kLimit ? "  [not judged: others use the CPUs]"
              : isa != Isa::kAvx512             ? ""
              : rounds.best(row) >= 8.0         ? "  [8.0 met]"
                                                : "  [8.0 MISSED]");
}

void adamw_sweep(ThreadPool& pool, const RowOptions& options) {
  constexpr int64_t kCount = int64_t{16} << 20;
  AlignedBuffer p(kCount * 4, Pages::kTransparent), m(kCount * 4, Pages::kTransparent),
      v(kCount * 4, Pages::kTransparent), g(kCount * 4, Pages::kTransparent);
  float* const arrays[] = {reinterpret_cast<float*>(p.data()), reinterpret_cast<float*>(m.data()),
                           reinterpret_cast<float*>(v.data()), reinterpret_cast<float*>(g.data())};
  fill(arrays[0], kCount, 1);
  fill(arrays[1], kCount, 2);
  fill(arrays[3], kCount, 3);
  for (int64_t i = 0; i < kCount; ++i) arrays[2][i] = 0.01f;
  const AdamW h{1e-5, 0.9, 0.999, 1e-8, 0.01, 1.0, 0.1, 0.03};
  Rounds rounds;
  const int threads = pool.threads();
  const auto timed = [&](auto&& part) {
    const double seconds = run_timed(pool, threads, [&](int64_t task, int) {
      const int64_t begin = kCount * task / threads, end = kCount * (task + 1) / threads;
      part(begin, end - begin);
    });
    return static_cast<double>(kCount) * 28 / seconds * 1e-9;
  };
  const size_t limit = rounds.add("sweep", [&] {
    return timed([&](int64_t begin, int64_t n) {
      // The same streams, one bitwise operation each.
      auto* a = reinterpret_cast<uint64_t*>(arrays[0] + begin);
      auto* b = reinterpret_cast<uint64_t*>(arrays[1] + begin);
      auto* c = reinterpret_cast<uint64_t*>(arrays[2] + begin);
      const auto* d = reinterpret_cast<const uint64_t*>(arrays[3] + begin);
      for (int64_t i = 0; i < n / 2; ++i) {
        const uint64_t x = d[i] & 1;  // the last bits only: they stay the same kind of numbers
        a[i] ^= x;
        b[i] ^= x;
        c[i] ^= x;
      }
    });
  });
  const size_t row = rounds.add("adamw", [&] {
    return timed([&](int64_t begin, int64_t n) {
      adamw(h, arrays[0] + begin, arrays[1] + begin, arrays[2] + begin, arrays[3] + begin, n);
    });
  });
  const OthersLoad load;
  rounds.run(options.rounds);
  print_row(kAdamw, rounds.best(row), "GB/s", rounds.median_ratio(row, {limit}),
            "of the same sweep without arithmetic", 0.97, load);
}

// A chunk of tokens through a head of 49152 x 576: logits, loss and their gradient, dX.
void cross_entropy(ThreadPool& pool, const RowOptions& options) {
  constexpr int64_t kTokens = 170, kVocab = 49152, kWidth = 576;
  AlignedBuffer x(kTokens * kWidth * 2), dx(kTokens * kWidth * 2);
  AlignedBuffer logits(kTokens * kVocab * 4, Pages::kTransparent);
  PackedWeight w{nullptr, nullptr, kVocab, kWidth, Elem::kBf16};
  AlignedBuffer packed(packed_weight_bytes(Elem::kBf16, kVocab, kWidth), Pages::kTransparent);
  w.data = packed.data();
  {
    std::vector<float> values(kVocab * kWidth);
    fill(values.data(), kVocab * kWidth, 1);
    std::vector<uint16_t> half(values.size());
    cast(values.data(), Elem::kF32, half.data(), Elem::kBf16, kVocab * kWidth, true);
    pack_weight_rows(w, half.data(), kWidth, 0, kVocab);
    cast(values.data(), Elem::kF32, x.data(), Elem::kBf16, kTokens * kWidth, true);
  }
  std::vector<int32_t> targets(kTokens);
  for (int64_t i = 0; i < kTokens; ++i)
    targets[static_cast<size_t>(i)] = static_cast<int32_t>(i * 289);
  std::vector<float> loss(kTokens);
  pool.reserve_scratch(gemm_scratch_bytes());
  const int threads = pool.threads();
  const auto product = [&](const GemmTerm& term, int64_t n, MatOut c) {
    const GemmJob job{kTokens, n, &term, 1, c, false, nullptr, Precision::kBf16};
    int64_t m_step = 0, n_step = 0;
    gemm_steps(Precision::kBf16, &m_step, &n_step);
    return run_timed(pool, threads, [&](int64_t task, int worker) {
      const int64_t units = (n + n_step - 1) / n_step;
      const int64_t begin = units * task / threads * n_step,
                    end = std::min(n, units * (task + 1) / threads * n_step);
      gemm(job, 0, kTokens, begin, end, pool.scratch(worker));
    });
  };
  const GemmTerm forward{
      Mat{x.data(), kWidth, Elem::kBf16}, false, GemmTerm::B::kWeightT, &w, {}, kWidth};
  const GemmTerm backward{
      Mat{logits.data(), kVocab, Elem::kF32}, false, GemmTerm::B::kWeight, &w, {}, kVocab};
  const auto products = [&](bool with_loss) {
    double seconds = product(forward, kVocab, MatOut{logits.data(), kVocab, Elem::kF32});
    if (with_loss)
      seconds += run_timed(pool, threads, [&](int64_t task, int) {
        softmax_xent(reinterpret_cast<const float*>(logits.data()), kVocab, kVocab, targets.data(),
                     loss.data(), MatOut{logits.data(), kVocab, Elem::kF32},
                     kTokens * task / threads, kTokens * (task + 1) / threads);
      });
    seconds += product(backward, kWidth, MatOut{dx.data(), kWidth, Elem::kBf16});
    return 4.0 * static_cast<double>(kTokens * kVocab * kWidth) / seconds * 1e-9;
  };
  Rounds rounds;
  const size_t alone = rounds.add("products", [&] { return products(false); });
  const size_t row = rounds.add("all", [&] { return products(true); });
  const OthersLoad load;
  rounds.run(options.rounds);
  print_row(kCrossEntropy, rounds.best(row), "GF/s", rounds.median_ratio(row, {alone}),
            "of its products alone", 0.92, load);
  std::printf("  %-28s %8.1f MB a chunk\n", "  its memory",
              static_cast<double>(logits.size()) * 1e-6);
}

RowOptions parse(const std::vector<std::string>& words) {
  RowOptions o = parse_row_options("sweep-bench", words);
  // Scalar code is bound by no memory: it is measured only where it is asked for.
  if (!o.isas_named && o.isas.size() > 1) std::erase(o.isas, Isa::kScalar);
  std::vector<std::string> rows = {kQuantiseFp32, kQuantiseBf16, kAdamw, kCrossEntropy};
  if (std::count(o.threads.begin(), o.threads.end(), 1) > 0) rows.emplace_back(kQuantiseCache);
  o.check_only(rows);
  return o;
}

void measure(const RowOptions& options, Isa isa, int threads) {
  set_active_isa(isa);
  ThreadPool pool(threads);
  std::printf("%s, %d thread%s\n", isa_name(isa), threads, threads == 1 ? "" : "s");
  if (options.wants(kQuantiseFp32)) quantiser_from_memory(pool, Elem::kF32, options);
  if (options.wants(kQuantiseBf16)) quantiser_from_memory(pool, Elem::kBf16, options);
  if (options.wants(kQuantiseCache) && threads == 1) quantiser_in_cache(pool, isa, options);
  if (options.wants(kAdamw)) adamw_sweep(pool, options);
  if (options.wants(kCrossEntropy)) cross_entropy(pool, options);
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("sweep-bench", argc, argv, [](const std::vector<std::string>& words) {
    const RowOptions options = parse(words);
    for (const Isa isa : options.isas)
      for (const int threads : options.threads) measure(options, isa, threads);
    return 0;
  });
}
