#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cassert>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/aligned.h"
#include "base/clock.h"
#include "base/error.h"

namespace loongforge {
namespace {

// state_ holds the number of the run, whether workers may still enter it, and how many are inside.
// A worker enters with one compare-and-swap, so a run never waits for a worker that sleeps or was
// not scheduled: when the caller has finished the last task, it closes the run and waits only for
// those inside.
constexpr uint32_t kOpen = 1u << 11;
constexpr uint32_t kInside = kOpen - 1;
constexpr uint32_t kEpoch = kOpen << 1;
constexpr int kMaxThreads = 1024;
constexpr int64_t kSpinNs = 20'000;
constexpr size_t kCacheLine = 128;  // two lines: the prefetcher fetches pairs

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

// Calls done() until it is true or the spin time is over; true when done() was.
template <class Done>
bool spin_until(Done done) noexcept {
  int64_t deadline = 0;
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
    int64_t now = monotonic_ns();
    if (deadline == 0) deadline = now + kSpinNs;
    if (now >= deadline) return false;
  }
}

void bind_thread(pthread_t thread, int cpu) {
  std::string what = "cannot bind a thread to CPU " + std::to_string(cpu);
  if (cpu < 0 || cpu >= CPU_SETSIZE) throw_failed({}, what + ": no such CPU");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (int error = pthread_setaffinity_np(thread, sizeof set, &set); error != 0) {
    throw_failed({}, what + ": " + std::generic_category().message(error));
  }
}

// Signals are the main thread's: workers are started with all of them blocked.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t old_;
};

}  // namespace

struct ThreadPool::Impl {
  alignas(kCacheLine) std::atomic<uint32_t> state{0};
  alignas(kCacheLine) std::atomic<int64_t> next{0};
  alignas(kCacheLine) std::atomic<uint32_t> left{
      0};  // counts runs that the last worker left; the caller sleeps on it
  // The run under way. Written before state opens it, read by those who entered.
  alignas(kCacheLine) int64_t tasks = 0;
  void* context = nullptr;
  PoolBody body = nullptr;

  std::atomic<bool> stop{false};
  int count = 1;
  std::vector<std::thread> workers;
  std::vector<AlignedBuffer> scratch;
  size_t scratch_bytes = 0;
  bool bound = false;
  pthread_t caller{};
  cpu_set_t caller_mask{};

  void work(int worker) noexcept {
    for (;;) {
      int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      body(context, task, worker);
    }
  }

  // Enters a run other than the one numbered last; false while there is none to enter.
  bool enter(uint32_t* last) noexcept {
    uint32_t seen = state.load(std::memory_order_acquire);
    while ((seen & kOpen) != 0 && seen / kEpoch != *last) {
      if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_seq_cst,
                                      std::memory_order_acquire)) {
        *last = seen / kEpoch;
        return true;
      }
    }
    return false;
  }

  void leave() noexcept {
    uint32_t before = state.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & (kOpen | kInside)) == 1) {  // the run is closed and this was the last inside
      left.fetch_add(1, std::memory_order_seq_cst);
      left.notify_one();
    }
  }

  void worker_loop(int worker) noexcept {
    uint32_t last = 0;
    for (;;) {
      while (!spin_until([&] { return stop.load(std::memory_order_acquire) || enter(&last); })) {
        uint32_t seen = state.load(std::memory_order_acquire);
        bool enterable = (seen & kOpen) != 0 && seen / kEpoch != last;
        if (!enterable) state.wait(seen, std::memory_order_acquire);
      }
      if (stop.load(std::memory_order_acquire)) return;
      work(worker);
      leave();
    }
  }

  void open() noexcept {
    next.store(0, std::memory_order_relaxed);
    // Nobody is inside and the run is closed, so this steps the number and sets kOpen. An RMW, as
    // all changes of state: it orders the change before notify's look for sleepers.
    uint32_t now = state.load(std::memory_order_relaxed);
    uint32_t opened = ((now / kEpoch + 1) * kEpoch) | kOpen;
    state.exchange(opened, std::memory_order_seq_cst);
    state.notify_all();
  }

  void close() noexcept {
    uint32_t before = state.fetch_and(~kOpen, std::memory_order_seq_cst);
    if ((before & kInside) == 0) return;
    auto empty = [&] { return (state.load(std::memory_order_acquire) & kInside) == 0; };
    if (spin_until(empty)) return;
    for (;;) {
      uint32_t seen = left.load(std::memory_order_acquire);
      if (empty()) return;
      left.wait(seen, std::memory_order_acquire);
    }
  }

  void shut_down() noexcept {
    stop.store(true, std::memory_order_release);
    // Twice, so that state takes two values: a sleeper cannot find the very value it fell asleep on
    // (the number wraps).
    open();
    open();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
    if (bound) pthread_setaffinity_np(caller, sizeof caller_mask, &caller_mask);
  }
};

ThreadPool::ThreadPool(int threads, const int* cpus) : impl_(std::make_unique<Impl>()) {
  if (threads < 1 || threads > kMaxThreads) {
    throw_usage("cannot use " + std::to_string(threads) + " threads",
                "the number of threads is from 1 to " + std::to_string(kMaxThreads));
  }
  Impl& impl = *impl_;
  impl.count = threads;
  impl.scratch.resize(static_cast<size_t>(threads));
  try {
    BlockedSignals blocked;
    for (int worker = 1; worker < threads; ++worker) {
      impl.workers.emplace_back([&impl, worker] { impl.worker_loop(worker); });
      if (cpus != nullptr) bind_thread(impl.workers.back().native_handle(), cpus[worker]);
    }
    if (cpus != nullptr) {
      impl.caller = pthread_self();
      impl.bound =
          pthread_getaffinity_np(impl.caller, sizeof impl.caller_mask, &impl.caller_mask) == 0;
      bind_thread(impl.caller, cpus[0]);
    }
  } catch (const std::system_error& error) {
    impl.shut_down();
    throw_failed({}, "cannot start " + std::to_string(threads) + " threads: " + error.what());
  } catch (...) {
    impl.shut_down();
    throw;
  }
}

ThreadPool::~ThreadPool() { impl_->shut_down(); }

int ThreadPool::threads() const noexcept { return impl_->count; }

void ThreadPool::run_raw(int64_t tasks, void* context, PoolBody body) noexcept {
  Impl& impl = *impl_;
  if (impl.count == 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(context, task, 0);
    return;
  }
  assert((impl.state.load(std::memory_order_relaxed) & (kOpen | kInside)) == 0 && "nested run()");
  impl.tasks = tasks;
  impl.context = context;
  impl.body = body;
  impl.open();
  impl.work(0);
  impl.close();
}

void ThreadPool::reserve_scratch(size_t bytes_per_worker) {
  Impl& impl = *impl_;
  if (bytes_per_worker <= impl.scratch_bytes) return;
  impl.scratch_bytes = 0;
  for (AlignedBuffer& buffer : impl.scratch) {
    buffer = AlignedBuffer();  // first free, then allocate: the contents are not kept
    buffer = AlignedBuffer(bytes_per_worker, Pages::kTransparent);
  }
  impl.scratch_bytes = bytes_per_worker;
}

void* ThreadPool::scratch(int worker) noexcept {
  return impl_->scratch[static_cast<size_t>(worker)].data();
}

size_t ThreadPool::scratch_bytes() const noexcept { return impl_->scratch_bytes; }

}  // namespace loongforge
