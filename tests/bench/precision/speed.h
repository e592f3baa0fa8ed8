// How fast each recipe trains, measured apart from the runs: loongforge train --dry_run --probe of
// each, in turn, in rounds. The fastest round counts: what others do on the machine only ever slows
// one down. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/precision/plan.h"
#include "bench/precision/store.h"
#include "bench/precision/table.h"

namespace loongforge::bench {

// By part.
std::map<std::string, Speeds> read_speeds(const std::filesystem::path& work);
// Measures the recipes of these runs and adds them to WORK/speed.json in place of what stood there
// of them.
void measure_speeds(const std::vector<Run>& runs, const Program& program, int64_t rounds,
                    const std::filesystem::path& work);

}  // namespace loongforge::bench
