// The folder of the proof's runs: WORK/runs/<part>-<recipe>-s<seed>-<crc>, where crc is that of
// everything that decides the run's bits (options, model, dataset). So a finished run is found
// again by what it is, and runs of other options stand beside it. A run that was stopped goes on
// from its newest checkpoint. Several programs may work in one folder: a run is locked while one of
// them has it. Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/precision/plan.h"
#include "bench/precision/record.h"

namespace loongforge::bench {

enum class Ended { kDone, kBusy, kStopped, kFailed };

struct Program {
  std::string path;                // loongforge-train
  std::vector<std::string> words;  // besides the run's own: --threads
};

class Store {
 public:
  explicit Store(std::filesystem::path work) : work_(std::move(work)) {}

  const std::filesystem::path& work() const noexcept { return work_; }
  std::filesystem::path folder(const Run& run);
  // The finished run's record.
  std::optional<RunRecord> find(const Run& run);
  // Takes the run, or goes on with it, to its end. kBusy: another program has it, or training that
  // was left alone still ends there. kStopped: it saved and asks to be run again. kFailed: *message
  // says why. Error as run_program() where this process is asked to stop: the run has saved.
  Ended take(const Run& run, const Program& program, std::string* message);

 private:
  std::string key(const Run& run);
  int64_t checksum(const std::filesystem::path& file);  // CRC32C, read once

  std::filesystem::path work_;
  std::map<std::string, int64_t> checksums_;
};

}  // namespace loongforge::bench
