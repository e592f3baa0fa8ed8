// Whether anyone else used the CPUs while a benchmark ran: where others take more than 5 %, figures
// are printed but nothing is judged by them.
// Thread-safety: the caller's thread only.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace loongforge::bench {

class OthersLoad {
 public:
  OthersLoad() : start_(read()) {}
  // The share of all CPUs that other processes (and stolen time) took since construction; 0 where
  // /proc/stat cannot be read.
  double share() const {
    const Now end = read();
    const double all = end.all - start_.all;
    const double others = (end.busy - start_.busy) - (end.own - start_.own);
    return all <= 0 || others <= 0 ? 0.0 : others / all;
  }
  static constexpr double kLimit = 0.05;

 private:
  struct Now {
    double all = 0, busy = 0, own = 0;  // seconds
  };
  static Now read() {
    Now now;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    now.own = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    std::FILE* file = std::fopen("/proc/stat", "r");
    if (file == nullptr) return now;
    double t[8] = {};  // user nice system idle iowait irq softirq steal
    const int got = std::fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2],
                                &t[3], &t[4], &t[5], &t[6], &t[7]);
    std::fclose(file);
    if (got != 8) return now;
    const auto tick = static_cast<double>(sysconf(_SC_CLK_TCK));
    for (const double x : t) now.all += x / tick;
    now.busy = now.all - (t[3] + t[4]) / tick;
    return now;
  }

  Now start_;
};

}  // namespace loongforge::bench
