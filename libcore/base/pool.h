// Fork-join thread pool: one caller, n - 1 workers, no queue. The caller is worker 0.
//
// Thread-safety: one run() at a time, from one thread; run() must not be called from inside a task.
// Invariants: every task index in [0, tasks) is executed exactly once; run() returns after all of
// them; which thread executes which task is not defined, so a task's result may depend on its index
// only. Tasks are taken from one counter in ascending order. A run of one task, and every run of a
// pool of one thread, is executed by the caller alone. Workers spin for some 20 microseconds
// between runs, then sleep on a futex (std::atomic wait); a run does not wait for workers that are
// still waking. Workers block all signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/api.h"

namespace loongforge {

// Called as body(context, task, worker): worker in [0, threads()) names scratch that is the task's
// alone.
using PoolBody = void (*)(void* context, int64_t task, int worker) noexcept;

class LF_API ThreadPool {
 public:
  // threads from 1 to 1024, else Error(kUsage). cpus, when not null, holds one CPU number per
  // thread to bind to, the calling thread first; its mask is restored by the destructor.
  // Error(kFailed) when the system refuses either.
  explicit ThreadPool(int threads, const int* cpus = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept;

  // Executes body for every task in [0, tasks). Tasks are handed out in ascending order.
  void run_raw(int64_t tasks, void* context, PoolBody body) noexcept;

  // The same with a callable f(int64_t task, int worker); f must not throw.
  template <class F>
  void run(int64_t tasks, F&& f) noexcept {
    run_raw(tasks, &f, [](void* context, int64_t task, int worker) noexcept {
      (*static_cast<std::remove_reference_t<F>*>(context))(task, worker);
    });
  }

  // Per-worker scratch memory, 64-byte aligned, grown on demand between runs; contents undefined.
  // REQUIRES no run() under way.
  void reserve_scratch(size_t bytes_per_worker);
  void* scratch(int worker) noexcept;
  size_t scratch_bytes() const noexcept;  // per worker

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge
