#include "base/pool.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "support/expect_error.h"

using loongforge::ErrorCode;
using loongforge::ThreadPool;

TEST_CASE("pool: every task once, whatever the counts") {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    std::vector<int> hits(500);
    bool exact = true, workers_in_range = true;
    for (int run = 0; run < 400; ++run) {
      int64_t tasks = run % 101;
      std::fill(hits.begin(), hits.end(), 0);
      std::atomic<bool> in_range{true};
      pool.run(tasks, [&](int64_t task, int worker) {
        hits[static_cast<size_t>(task)]++;  // plain memory: run() must order it
        if (worker < 0 || worker >= threads) in_range = false;
      });
      workers_in_range = workers_in_range && in_range;
      for (int64_t i = 0; i < 500; ++i)
        exact = exact && hits[static_cast<size_t>(i)] == (i < tasks ? 1 : 0);
      if (run % 100 == 50) usleep(2000);  // long enough for the workers to fall asleep
    }
    CHECK(exact);
    CHECK(workers_in_range);
  }
}

TEST_CASE("pool: tasks run side by side") {
  // Each task waits for all others: only possible when every thread has one.
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  for (int round = 0; round < 5; ++round) {
    if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> arrived{0};
    std::atomic<bool> late{false};
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    pool.run(kThreads, [&](int64_t, int) {
      arrived.fetch_add(1);
      while (arrived.load() < kThreads) {
        if (std::chrono::steady_clock::now() > deadline) {
          late = true;
          return;
        }
        std::this_thread::yield();
      }
    });
    CHECK(!late);
  }
}

TEST_CASE("pool: tasks are handed out in ascending order") {
  ThreadPool pool(3);
  std::vector<std::vector<int64_t>> seen(3);
  pool.run(2000,
           [&](int64_t task, int worker) { seen[static_cast<size_t>(worker)].push_back(task); });
  for (const auto& list : seen) CHECK(std::is_sorted(list.begin(), list.end()));
}

TEST_CASE("pool: a run sees what the caller and the runs before wrote") {
  ThreadPool pool(4);
  std::vector<int64_t> now(64, 0), after(64, -1);
  for (int round = 0; round < 300; ++round) {
    pool.run(64, [&](int64_t task, int) {
      after[static_cast<size_t>(task)] = now[static_cast<size_t>((task * 7 + 1) % 64)] + 1;
    });
    std::swap(now, after);
  }
  CHECK(std::all_of(now.begin(), now.end(), [](int64_t x) { return x == 300; }));
}

TEST_CASE("pool: scratch is each worker's own, aligned, and grows") {
  ThreadPool pool(4);
  pool.reserve_scratch(1000);
  CHECK(pool.scratch_bytes() == 1000);
  pool.reserve_scratch(3u << 20);
  pool.reserve_scratch(10);
  CHECK(pool.scratch_bytes() == 3u << 20);
  std::set<void*> distinct;
  for (int w = 0; w < 4; ++w) {
    CHECK(reinterpret_cast<uintptr_t>(pool.scratch(w)) % 64 == 0);
    distinct.insert(pool.scratch(w));
  }
  CHECK(distinct.size() == 4);
  std::atomic<int> wrong{0};
  pool.run(64, [&](int64_t task, int worker) {
    auto* bytes = static_cast<unsigned char*>(pool.scratch(worker));
    std::memset(bytes, static_cast<int>(task), 1 << 16);
    std::this_thread::yield();
    for (int i = 0; i < 1 << 16; i += 4097) {
      if (bytes[i] != static_cast<unsigned char>(task)) wrong++;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("pool: threads are bound and the caller's mask comes back") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  {
    int cpus[2] = {cpu, cpu};
    ThreadPool pool(2, cpus);
    std::atomic<int> elsewhere{0};
    pool.run(50, [&](int64_t, int) {
      if (sched_getcpu() != cpu) elsewhere++;
    });
    CHECK(elsewhere == 0);
  }
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
  int absent[2] = {cpu, 100000};
  LF_CHECK_ERROR(ThreadPool(2, absent), ErrorCode::kFailed, "CPU 100000");
}

TEST_CASE("pool: impossible thread counts are refused") {
  LF_CHECK_ERROR(ThreadPool(0), ErrorCode::kUsage, "0 threads");
  LF_CHECK_ERROR(ThreadPool(-3), ErrorCode::kUsage, "from 1 to 1024");
  LF_CHECK_ERROR(ThreadPool(5000), ErrorCode::kUsage, "5000 threads");
}

TEST_CASE("pool: signals stay with the caller") {
  ThreadPool pool(3);
  std::atomic<int> open_masks{0}, helpers{0};
  pthread_t caller = pthread_self();
  std::atomic<int> arrived{0};
  pool.run(3, [&](int64_t, int) {
    arrived++;
    for (int i = 0; i < 200000 && arrived < 3; ++i) std::this_thread::yield();
    if (pthread_equal(pthread_self(), caller)) return;
    helpers++;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    if (sigismember(&mask, SIGTERM) == 0 || sigismember(&mask, SIGINT) == 0) open_masks++;
  });
  CHECK(helpers > 0);
  CHECK(open_masks == 0);
}

TEST_CASE("pool: coming and going") {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 5);
    std::atomic<int> n{0};
    if (i % 2 == 0) pool.run(i, [&](int64_t, int) { n++; });
    CHECK(n == (i % 2 == 0 ? i : 0));
  }
}
