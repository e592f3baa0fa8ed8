// Speed of gemm against the physical limits: the peak of the multiply-add instruction, and reading
// memory for one row; and beside it the products of other libraries. Weights rotate over more
// memory than the caches hold.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "bench/options.h"
#include "bench/peers/peers.h"
#include "kernels/generic/gemm_table.h"
#include "quiet.h"

#if LF_HAVE_AVX512
namespace loongforge::kernels::avx512 {
extern const GemmTable kGemmDotTable;
extern const GemmTable kGemmFmaTable;
bool dot_is_fast() noexcept;
}  // namespace loongforge::kernels::avx512
#endif

namespace {

using namespace loongforge;
using namespace loongforge::kernels;
using namespace loongforge::bench;

struct Shape {
  const char* name;
  GemmTerm::B kind;
  Elem b;
  int64_t m, n, k;
  Elem c = Elem::kBf16;
  int64_t rank = 0;  // a second term of that k, as a LoRA adapter brings
  bool a_transposed = false;
  Precision precision = Precision::kBf16;
};

const Shape kShapes[] = {
    {"fwd 4096 M=512", GemmTerm::B::kWeightT, Elem::kE4M3, 512, 4096, 4096},
    {"fwd 4096 M=128", GemmTerm::B::kWeightT, Elem::kE4M3, 128, 4096, 4096},
    {"fwd 4096 M=32", GemmTerm::B::kWeightT, Elem::kE4M3, 32, 4096, 4096},
    {"fwd 4096 M=8", GemmTerm::B::kWeightT, Elem::kE4M3, 8, 4096, 4096},
    {"fwd 4096 M=4", GemmTerm::B::kWeightT, Elem::kE4M3, 4, 4096, 4096},
    {"fwd 4096 M=1", GemmTerm::B::kWeightT, Elem::kE4M3, 1, 4096, 4096},
    {"fwd 4096 M=1 bf16", GemmTerm::B::kWeightT, Elem::kBf16, 1, 4096, 4096},
    {"dX 4096 M=512", GemmTerm::B::kWeight, Elem::kE4M3, 512, 4096, 4096},
    {"dX 4096 M=128", GemmTerm::B::kWeight, Elem::kE4M3, 128, 4096, 4096},
    {"nf4 fwd 4096 M=512", GemmTerm::B::kWeightT, Elem::kNf4, 512, 4096, 4096},
    {"nf4 fwd 4096 M=32", GemmTerm::B::kWeightT, Elem::kNf4, 32, 4096, 4096},
    {"nf4 fwd 4096 M=4", GemmTerm::B::kWeightT, Elem::kNf4, 4, 4096, 4096},
    {"nf4 fwd 4096 M=1", GemmTerm::B::kWeightT, Elem::kNf4, 1, 4096, 4096},
    {"nf4 dX 4096 M=512", GemmTerm::B::kWeight, Elem::kNf4, 512, 4096, 4096},
    {"smol q fwd", GemmTerm::B::kWeightT, Elem::kE4M3, 2048, 576, 576, Elem::kBf16, 8},
    {"smol qkv fwd", GemmTerm::B::kWeightT, Elem::kE4M3, 2048, 960, 576, Elem::kBf16, 8},
    {"smol gate/up fwd", GemmTerm::B::kWeightT, Elem::kE4M3, 2048, 3072, 576, Elem::kBf16, 8},
    {"smol down fwd", GemmTerm::B::kWeightT, Elem::kE4M3, 2048, 576, 1536, Elem::kBf16, 8},
    {"smol qkv dX", GemmTerm::B::kWeight, Elem::kE4M3, 2048, 576, 960, Elem::kBf16, 8},
    {"smol gate/up dX", GemmTerm::B::kWeight, Elem::kE4M3, 2048, 576, 3072, Elem::kBf16, 8},
    {"smol down dX", GemmTerm::B::kWeight, Elem::kE4M3, 2048, 1536, 576, Elem::kBf16, 8},
    {"smol dW bf16", GemmTerm::B::kPlain, Elem::kBf16, 1536, 576, 2048, Elem::kF32, 0, true},
    {"smol dW fp8", GemmTerm::B::kPlain, Elem::kE4M3, 1536, 576, 2048, Elem::kF32, 0, true},
    {"lora X A^T", GemmTerm::B::kPlainT, Elem::kF32, 2048, 8, 576},
    {"lora r=16 X A^T", GemmTerm::B::kPlainT, Elem::kF32, 2048, 16, 576},
    {"lora dA", GemmTerm::B::kPlain, Elem::kE4M3, 8, 576, 2048, Elem::kF32, 0, true},
    {"lora dY B", GemmTerm::B::kPlain, Elem::kF32, 2048, 8, 576},
    {"lora dB", GemmTerm::B::kPlain, Elem::kBf16, 576, 8, 2048, Elem::kF32, 0, true},
    {"head fwd chunk", GemmTerm::B::kWeightT, Elem::kBf16, 170, 49152, 576, Elem::kF32},
    {"head dX chunk", GemmTerm::B::kWeight, Elem::kBf16, 170, 576, 49152, Elem::kF32},
    {"fp32 fwd", GemmTerm::B::kWeightT, Elem::kF32, 512, 1536, 576, Elem::kF32, 0, false,
     Precision::kF32},
};

// What a row should reach, as a share of a limit or a multiple of a peer; 0 threads: any number.
struct Bar {
  FmaKind kind;
  const char* row;
  int threads;
  const char* of;  // "peak", "read", or a peer's name
  double least;
};
const Bar kBars[] = {
    {FmaKind::kYmm, "fwd 4096 M=512", 0, "peak", 0.93},
    {FmaKind::kYmm, "fwd 4096 M=128", 0, "peak", 0.90},
    {FmaKind::kYmm, "dX 4096 M=512", 0, "peak", 0.93},
    {FmaKind::kYmm, "dX 4096 M=128", 0, "peak", 0.90},
    {FmaKind::kYmm, "fwd 4096 M=1", 1, "read", 0.65},
    {FmaKind::kYmm, "fwd 4096 M=1", 2, "read", 0.75},
    {FmaKind::kYmm, "fwd 4096 M=1", 0, "OpenBLAS sgemm", 2.0},
    {FmaKind::kYmm, "fwd 4096 M=512", 0, "oneDNN f32", 0.98},
    {FmaKind::kZmmDotBf16, "fwd 4096 M=512", 0, "peak", 0.95},
    {FmaKind::kZmmDotBf16, "fwd 4096 M=128", 0, "peak", 0.94},
    {FmaKind::kZmmDotBf16, "fwd 4096 M=32", 0, "peak", 0.90},
    {FmaKind::kZmmDotBf16, "fwd 4096 M=8", 0, "peak", 0.86},
    {FmaKind::kZmmDotBf16, "dX 4096 M=512", 0, "peak", 0.95},
    {FmaKind::kZmmDotBf16, "fwd 4096 M=1", 0, "read", 0.92},
};

// One way of computing products, and the instruction that bounds it.
struct Variant {
  std::string name;
  GemmTable table;
  FmaKind kind;
};

std::vector<Variant> variants_of(Isa isa) {
  const GemmTable active{packed_weight_bytes, pack_weight_rows, pack_nf4_rows, gather_weight_rows,
                         gemm_scratch_bytes,  gemm_steps,       gemm};
#if LF_HAVE_AVX512
  if (isa == Isa::kAvx512) {
    const bool dot = avx512::dot_is_fast();
    return {{dot ? "avx512 by vdpbf16ps (used here)" : "avx512 by vdpbf16ps", avx512::kGemmDotTable,
             FmaKind::kZmmDotBf16},
            {dot ? "avx512 by fp32 FMA" : "avx512 by fp32 FMA (used here)", avx512::kGemmFmaTable,
             FmaKind::kZmm}};
  }
#endif
  return {{isa_name(isa), active, fma_kinds(isa, Precision::kF32)[0]}};
}

class Case {
 public:
  Case(const Shape& s, const GemmTable& table, ThreadPool& pool, size_t weight_bytes)
      : s_(s), table_(table), pool_(pool) {
    std::mt19937 rng(1);
    const bool n_first = s.kind == GemmTerm::B::kWeightT || s.kind == GemmTerm::B::kPlainT;
    const int64_t rows = n_first ? s.n : s.k, cols = n_first ? s.k : s.n;
    weight_ = s.kind == GemmTerm::B::kWeightT || s.kind == GemmTerm::B::kWeight;
    const size_t one = weight_ ? table.packed_weight_bytes(s.b, rows, cols)
                               : static_cast<size_t>(rows * cols * elem_bytes(s.b));
    one_ = (one + 4095) / 4096 * 4096;
    copies_ = std::max<size_t>(1, weight_bytes / one_);
    b_ = AlignedBuffer(one_ * copies_, Pages::kTransparent);
    // Patterns that are small numbers in every format.
    const auto fill = [&](uint8_t* p, Elem e, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const float x = (static_cast<float>(rng() & 0xFFFF) / 65536.0f - 0.5f);
        uint32_t u = 0;
        std::memcpy(&u, &x, 4);
        const auto half = static_cast<uint16_t>(u >> 16);
        const auto code = static_cast<uint8_t>((rng() & 0x8F) | 0x40);
        std::memcpy(p + i * elem_bytes(e),
                    e == Elem::kF32    ? static_cast<void*>(&u)
                    : e == Elem::kBf16 ? const_cast<uint16_t*>(&half)
                                       : static_cast<void*>(const_cast<uint8_t*>(&code)),
                    static_cast<size_t>(elem_bytes(e)));
      }
    };
    exps_.assign(static_cast<size_t>(rows * ((cols + 127) / 128) + 64), -3);
    // NF4: every byte is two codes.
    const bool nf4 = s.b == Elem::kNf4;
    std::vector<uint8_t> source(
        static_cast<size_t>(rows * (nf4 ? (cols + 1) / 2 : cols * elem_bytes(s.b))));
    if (nf4) {
      for (uint8_t& both : source) both = static_cast<uint8_t>(rng());
    } else {
      fill(source.data(), s.b, rows * cols);
    }
    const std::vector<float> absmax(static_cast<size_t>(nf4 ? rows * ((cols + 63) / 64) : 0),
                                    0.07f);
    for (size_t c = 0; c < copies_; ++c) {
      PackedWeight w{b_.data() + c * one_, exps_.data(), rows, cols, s.b};
      if (!weight_) {
        std::memcpy(w.data, source.data(), source.size());
      } else if (c == 0 && nf4) {
        table.pack_nf4_rows(w, source.data(), (cols + 1) / 2, absmax.data(), (cols + 63) / 64, 0,
                            rows);
      } else if (c == 0) {
        table.pack_weight_rows(w, source.data(), cols, 0, rows);
      } else {
        std::memcpy(w.data, b_.data(), one);
      }
      weights_.push_back(w);
    }
    ld_b_ = cols;
    a_ = AlignedBuffer(static_cast<size_t>(s.m * s.k * 2 + 64), Pages::kTransparent);
    fill(a_.data(), Elem::kBf16, s.m * s.k);
    c_ = AlignedBuffer(static_cast<size_t>(s.m * s.n * 4 + 64), Pages::kTransparent);
    std::memset(c_.data(), 0, c_.size());
    t_.resize(static_cast<size_t>(s.m * (s.rank + 1) * 4));
    lora_.resize(static_cast<size_t>(s.n * (s.rank + 1) * 4));
    pool.reserve_scratch(table.scratch_bytes());
  }

  const uint8_t* bytes() const { return b_.data(); }
  size_t size() const { return copies_ * one_; }

  double flops() const {
    return 2.0 * static_cast<double>(s_.m * s_.n) * static_cast<double>(s_.k + s_.rank);
  }
  // Seconds of one product over the pool, the next copy of the weight each time.
  double run() {
    const size_t copy = next_++ % copies_;
    GemmTerm terms[2] = {
        {Mat{a_.data(), s_.a_transposed ? s_.m : s_.k, Elem::kBf16}, s_.a_transposed, s_.kind,
         &weights_[copy], Mat{weights_[copy].data, ld_b_, s_.b, exps_.data(), (ld_b_ + 127) / 128},
         s_.k},
        {Mat{t_.data(), s_.rank, Elem::kBf16}, false, GemmTerm::B::kPlainT, nullptr,
         Mat{lora_.data(), s_.rank, Elem::kBf16}, s_.rank}};
    const GemmJob job{
        s_.m,  s_.n,    terms,       s_.rank > 0 ? 2 : 1, MatOut{c_.data(), s_.n, s_.c},
        false, nullptr, s_.precision};
    int64_t m_step = 0, n_step = 0;
    table_.steps(s_.precision, &m_step, &n_step);
    const int threads = pool_.threads();
    const bool rows = s_.m >= 96 * threads;
    const int64_t size = rows ? s_.m : s_.n, step = rows ? m_step : n_step;
    const int64_t units = (size + step - 1) / step;
    return run_timed(pool_, threads, [&](int64_t task, int worker) {
      const int64_t begin = std::min(size, units * task / threads * step),
                    end = std::min(size, units * (task + 1) / threads * step);
      table_.gemm(job, rows ? begin : 0, rows ? end : s_.m, rows ? 0 : begin, rows ? s_.n : end,
                  pool_.scratch(worker));
    });
  }

 private:
  const Shape& s_;
  const GemmTable& table_;
  ThreadPool& pool_;
  bool weight_ = false;
  size_t one_ = 0, copies_ = 1, next_ = 0;
  AlignedBuffer b_, a_, c_;
  std::vector<int8_t> exps_;
  std::vector<PackedWeight> weights_;
  std::vector<uint8_t> t_, lora_;
  int64_t ld_b_ = 0;
};

bool has_peers(const Shape& s) {
  return s.kind == GemmTerm::B::kWeightT && s.rank == 0 && s.c != Elem::kF32 && s.b == Elem::kE4M3;
}

// Prints what bars say of one row, or that the machine was too busy to say it.
class Verdict {
 public:
  Verdict(FmaKind kind, const Shape& s, int threads) : kind_(kind), s_(s), threads_(threads) {}
  void add(const char* of, double ratio) {
    for (const Bar& bar : kBars) {
      if (bar.kind != kind_ || std::string(bar.row) != s_.name || std::string(bar.of) != of ||
          (bar.threads != 0 && bar.threads != threads_))
        continue;
      char text[96];
      std::snprintf(text, sizeof text, "%s%.2f of %s %s", text_.empty() ? "" : "; ", bar.least, of,
                    ratio >= bar.least ? "met" : "MISSED");
      text_ += text;
    }
  }
  void print() const {
    if (text_.empty()) return;
    const double others = load_.share();
    if (others > OthersLoad::kLimit) {
      std::printf("  [not judged: others took %.0f %% of the CPUs]", others * 100);
    } else {
      std::printf("  [%s]", text_.c_str());
    }
  }

 private:
  OthersLoad load_;
  FmaKind kind_;
  const Shape& s_;
  int threads_;
  std::string text_;
};

struct Options : RowOptions {
  bool peers = true;
};

Options parse(const std::vector<std::string>& words) {
  std::string peers = "on";
  Options o{parse_row_options("gemm-bench", words, [&](CommandLine* line) {
    line->choice("--peers", {"on", "off"}, &peers);
  })};
  o.peers = peers == "on";
  std::vector<std::string> rows;
  for (const Shape& s : kShapes) rows.emplace_back(s.name);
  o.check_only(rows);
  return o;
}

void run_shape(const Shape& s, const Variant& variant, ThreadPool& pool, const Options& options) {
  const bool memory = s.m <= 4;
  Case test(s, variant.table, pool, memory ? size_t{1} << 30 : size_t{1} << 27);
  Rounds table;
  const FmaKind kind = s.precision == Precision::kF32 && variant.kind == FmaKind::kZmmDotBf16
                           ? FmaKind::kZmm
                           : variant.kind;
  const std::vector<size_t> peak = {
      table.add(fma_name(kind), [&] { return fma_peak(pool, kind); })};
  std::vector<size_t> read;
  size_t at = 0;
  constexpr size_t kWindow = size_t{64} << 20;
  if (memory) {
    read.push_back(table.add("read", [&] {
      at = at + 2 * kWindow <= test.size() ? at + kWindow : 0;
      return read_rate(pool, test.bytes() + at, kWindow);
    }));
  }
  const int wanted = static_cast<int>(2e9 * pool.threads() / test.flops());
  const int repeats = memory ? 4 : std::clamp(wanted, 1, 50);
  const size_t row = table.add(s.name, [&] {
    double seconds = 0;
    for (int i = 0; i < repeats; ++i) seconds += test.run();
    return test.flops() * repeats / seconds * 1e-9;
  });
  std::vector<std::unique_ptr<Peer>> peers;
  if (options.peers && has_peers(s)) {
    const size_t copies = 1 + (size_t{128} << 20) / static_cast<size_t>(s.n * s.k * 2);
    peers = make_peers({s.m, s.n, s.k, pool.threads(), copies}, variant.kind == FmaKind::kYmm);
    for (const auto& peer : peers) {
      table.add(peer->name(), [&, copies, next = size_t{0}]() mutable {
        const size_t copy = next++ % copies;
        const double seconds = run_timed(pool, pool.threads(), [&](int64_t part, int) {
          peer->run(static_cast<int>(part), copy);
        });
        return test.flops() / seconds * 1e-9;
      });
    }
  }
  Verdict verdict(kind, s, pool.threads());
  table.run(options.rounds);
  std::printf("  %-18s %8.1f GF/s  %5.2f of peak, median (best %.2f of best %.1f)", s.name,
              table.best(row), table.median_ratio(row, peak), table.best_ratio(row, peak),
              table.best(peak));
  verdict.add("peak", table.median_ratio(row, peak));
  if (memory) {
    const double bytes =
        s.b == Elem::kNf4 ? 0.5 + 4.0 / 64.0 : static_cast<double>(elem_bytes(s.b));
    const double scale = static_cast<double>(s.n * s.k) * bytes / test.flops();
    std::printf("  %6.1f GB/s  %5.2f of read, median (best %.2f of best %.1f)",
                table.best(row) * scale, table.median_ratio(row, read) * scale,
                table.best_ratio(row, read) * scale, table.best(read));
    verdict.add("read", table.median_ratio(row, read) * scale);
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    const std::vector<size_t> other = {row + 1 + i};
    std::printf("  %s %.1f: x %.2f", table.name(other[0]).c_str(), table.best(other),
                table.median_ratio(row, other));
    verdict.add(table.name(other[0]).c_str(), table.median_ratio(row, other));
  }
  verdict.print();
  std::printf("\n");
  std::fflush(stdout);
}

int measure(const Options& options, const char* name) {
  Isa isa{};
  if (!parse_isa(name, &isa) || !set_active_isa(isa)) return 1;
  for (const Variant& variant : variants_of(isa)) {
    for (const int threads : options.threads) {
      ThreadPool pool(threads);
      std::printf("%s, %d thread%s, peak: %s\n", variant.name.c_str(), threads,
                  threads == 1 ? "" : "s", fma_name(variant.kind));
      for (const Shape& s : kShapes)
        if (options.wants(s.name)) run_shape(s, variant, pool, options);
    }
  }
  return 0;
}

// The libraries beside ours choose their instructions when they are loaded: each ISA has a process
// of its own, whose environment says so. It ends when this one does.
int run_alone(char** argv, const char* isa) {
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    if (std::string(isa) == "avx2") {
      setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    } else {
      unsetenv("OPENBLAS_CORETYPE");
    }
    setenv("LF_GEMM_BENCH_ISA", isa, 1);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "gemm-bench: the run of %s was ended by signal %d\n", isa, WTERMSIG(status));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("gemm-bench", argc, argv, [argv](const std::vector<std::string>& words) {
    const Options options = parse(words);
    if (const char* alone = std::getenv("LF_GEMM_BENCH_ISA")) return measure(options, alone);
    if (options.peers && !missing_peers().empty()) std::printf("%s\n", missing_peers().c_str());
    std::fflush(stdout);
    int failed = 0;
    for (const Isa isa : options.isas) failed |= run_alone(argv, isa_name(isa));
    return failed;
  });
}
