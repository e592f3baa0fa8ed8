// What the benchmarks share: physical limits measured beside the thing that is judged by them.
//
// Machines change speed from one second to the next (placement, neighbours), so nothing is compared
// across runs: in every round each limit and each contestant runs once for a few milliseconds, and
// a result is the median of the rounds' ratios; beside it stands best rate / best limit, which a
// busy machine disturbs less. Thread-safety: the caller's thread only; work runs on the given pool.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "base/pool.h"
#include "kernels/isa.h"
#include "kernels/types.h"

namespace loongforge::bench {

// ---- Time.
inline double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Runs body(task, worker) for every task and returns the seconds that the threads need where nobody
// else wants the cores: the CPU time of all tasks spread evenly, or of the longest task where that
// is more.
template <class F>
double run_timed(ThreadPool& pool, int64_t tasks, F&& body) {
  std::vector<double> seconds(static_cast<size_t>(tasks));
  pool.run(tasks, [&](int64_t task, int worker) {
    const double start = thread_cpu_seconds();
    body(task, worker);
    seconds[static_cast<size_t>(task)] = thread_cpu_seconds() - start;
  });
  double sum = 0;
  for (const double s : seconds) sum += s;
  return std::max(sum / pool.threads(), *std::max_element(seconds.begin(), seconds.end()));
}

// ---- Peak rates of multiply-add instructions, in registers.
enum class FmaKind { kScalar, kYmm, kZmm, kZmmDotBf16 };

inline const char* fma_name(FmaKind kind) {
  switch (kind) {
    case FmaKind::kYmm:
      return "fp32 FMA, ymm";
    case FmaKind::kZmm:
      return "fp32 FMA, zmm";
    case FmaKind::kZmmDotBf16:
      return "vdpbf16ps, zmm";
    default:
      return "scalar multiply and add";
  }
}
inline double fma_flops(FmaKind kind) {  // of one instruction
  switch (kind) {
    case FmaKind::kYmm:
      return 16;
    case FmaKind::kZmm:
      return 32;
    case FmaKind::kZmmDotBf16:
      return 64;
    default:
      return 2;
  }
}

#if defined(__x86_64__)
#define LF_BENCH_12(op)                                                                    \
  op("0") op("1") op("2") op("3") op("4") op("5") op("6") op("7") op("8") op("9") op("10") \
      op("1"                                                                               \
         "1")
#define LF_BENCH_24(op)                                                                     \
  LF_BENCH_12(op)                                                                           \
  op("12") op("13") op("14") op("15") op("16") op("17") op("18") op("19") op("20") op("21") \
      op("22") op("23")
// All registers start at 0: what earlier code left in them may be subnormal, which costs extra on
// some CPUs.
#define LF_BENCH_ZERO(i) "vpxor %%xmm" i ", %%xmm" i ", %%xmm" i "\n"
#define LF_BENCH_ZERO_HIGH(i) "vpxord %%zmm" i ", %%zmm" i ", %%zmm" i "\n"
#define LF_BENCH_LOOP(zero_more, instructions)                                                     \
  __asm__ volatile(LF_BENCH_12(LF_BENCH_ZERO) LF_BENCH_ZERO("12") LF_BENCH_ZERO("13")              \
                       LF_BENCH_ZERO("14") LF_BENCH_ZERO("15") zero_more                           \
                   "1:\n" instructions "dec %0\njnz 1b\nvzeroupper"                                \
                   : "+r"(rounds)                                                                  \
                   :                                                                               \
                   : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                     "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#define LF_BENCH_HIGH                                                        \
  LF_BENCH_ZERO_HIGH("16")                                                   \
  LF_BENCH_ZERO_HIGH("17")                                                   \
  LF_BENCH_ZERO_HIGH("18")                                                   \
  LF_BENCH_ZERO_HIGH("19")                                                   \
  LF_BENCH_ZERO_HIGH("20")                                                   \
  LF_BENCH_ZERO_HIGH("21") LF_BENCH_ZERO_HIGH("22") LF_BENCH_ZERO_HIGH("23") \
      LF_BENCH_ZERO_HIGH("30") LF_BENCH_ZERO_HIGH("31")
#define LF_BENCH_YMM(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" i "\n"
#define LF_BENCH_ZMM(i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" i "\n"
#define LF_BENCH_DOT(i) "vdpbf16ps %%zmm30, %%zmm31, %%zmm" i "\n"
#endif

// 24 * rounds instructions on one thread, independent in groups that hide their latency.
inline void fma_loop([[maybe_unused]] FmaKind kind, int64_t rounds) {
#if defined(__x86_64__)
  if (kind == FmaKind::kYmm) {
    rounds *= 2;
    LF_BENCH_LOOP("", LF_BENCH_12(LF_BENCH_YMM));
    return;
  }
  // zmm16 and above are not the compiler's in files compiled for the baseline, so they need no
  // clobber.
  if (kind == FmaKind::kZmm) {
    LF_BENCH_LOOP(LF_BENCH_HIGH, LF_BENCH_24(LF_BENCH_ZMM));
    return;
  }
  if (kind == FmaKind::kZmmDotBf16) {
    LF_BENCH_LOOP(LF_BENCH_HIGH, LF_BENCH_24(LF_BENCH_DOT));
    return;
  }
#endif
  float x[8] = {};
  for (int64_t i = 0; i < rounds * 3; ++i) {
    for (float& e : x) {
      __asm__ volatile("" : "+r"(i));
      e = e * 0.5f + 1.0f;
    }
  }
  volatile float sink = x[0] + x[7];
  (void)sink;
}

// GF/s of one window of about a millisecond on every thread of the pool.
inline double fma_peak(ThreadPool& pool, FmaKind kind) {
  const int64_t rounds = kind == FmaKind::kScalar ? 20000 : 60000;
  const int threads = pool.threads();
  const double seconds = run_timed(pool, threads, [&](int64_t, int) { fma_loop(kind, rounds); });
  return 24.0 * static_cast<double>(rounds) * threads * fma_flops(kind) / seconds * 1e-9;
}

// The kinds that an ISA's kernels of that precision may use; the limit is the fastest of them.
inline std::vector<FmaKind> fma_kinds(kernels::Isa isa, kernels::Precision precision) {
  switch (isa) {
    case kernels::Isa::kAvx2:
      return {FmaKind::kYmm};
    case kernels::Isa::kAvx512:
      if (precision == kernels::Precision::kF32) return {FmaKind::kZmm};
      return {FmaKind::kZmm, FmaKind::kZmmDotBf16};
    default:
      return {FmaKind::kScalar};
  }
}

// ---- Reading memory: bytes [begin, begin + bytes) in four streams. REQUIRES bytes % 1024 == 0.
inline void read_memory(const uint8_t* begin, size_t bytes) {
  const size_t part = bytes / 4;
  uint64_t sum = 0;
  for (size_t i = 0; i < part; i += 64) {
    for (int s = 0; s < 4; ++s) {
      const uint8_t* p = begin + static_cast<size_t>(s) * part + i;
#if defined(__x86_64__)
      __asm__ volatile(
          "movups (%0), %%xmm0\nmovups 16(%0), %%xmm1\nmovups 32(%0), %%xmm2\nmovups 48(%0), "
          "%%xmm3" ::"r"(p)
          : "xmm0", "xmm1", "xmm2", "xmm3");
#else
      uint64_t words[8];
      std::memcpy(words, p, 64);
      for (uint64_t w : words) sum += w;
#endif
    }
  }
  volatile uint64_t sink = sum;
  (void)sink;
}

// GB/s of reading [begin, begin + bytes) with every thread of the pool, each its own part.
inline double read_rate(ThreadPool& pool, const uint8_t* begin, size_t bytes) {
  const size_t part = bytes / static_cast<size_t>(pool.threads()) / 1024 * 1024;
  const double seconds = run_timed(pool, pool.threads(), [&](int64_t task, int) {
    read_memory(begin + static_cast<size_t>(task) * part, part);
  });
  return static_cast<double>(part) * pool.threads() / seconds * 1e-9;
}

// ---- Interleaved rounds.
class Rounds {
 public:
  // measure() runs once a round and returns a rate. Returns the entry's index.
  size_t add(std::string name, std::function<double()> measure) {
    entries_.push_back({std::move(name), std::move(measure), {}});
    return entries_.size() - 1;
  }
  void run(int rounds) {
    for (Entry& e : entries_) e.measure();  // caches, page tables, clock
    for (int r = 0; r < rounds; ++r)
      for (Entry& e : entries_) e.rates.push_back(e.measure());
  }
  const std::string& name(size_t i) const { return entries_[i].name; }
  double best(size_t i) const {
    return *std::max_element(entries_[i].rates.begin(), entries_[i].rates.end());
  }
  double best(const std::vector<size_t>& of) const {
    double x = 0;
    for (const size_t i : of) x = std::max(x, best(i));
    return x;
  }
  // Median over the rounds of rate i / the largest of the limits' rates in that round.
  double median_ratio(size_t i, const std::vector<size_t>& limits) const {
    std::vector<double> ratios;
    for (size_t r = 0; r < entries_[i].rates.size(); ++r) {
      double limit = 0;
      for (const size_t l : limits) limit = std::max(limit, entries_[l].rates[r]);
      ratios.push_back(entries_[i].rates[r] / limit);
    }
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<int64_t>(ratios.size() / 2),
                     ratios.end());
    return ratios[ratios.size() / 2];
  }
  double best_ratio(size_t i, const std::vector<size_t>& limits) const {
    return best(i) / best(limits);
  }

 private:
  struct Entry {
    std::string name;
    std::function<double()> measure;
    std::vector<double> rates;
  };
  std::vector<Entry> entries_;
};

}  // namespace loongforge::bench
