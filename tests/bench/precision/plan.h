// What the precision proof runs: two models (parts), each fine-tuned by every recipe with several
// seeds. A run's batches follow from its seed alone, so that recipes are compared pair by pair.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace loongforge::bench {

struct Recipe {
  std::string name;   // in folders, in --only
  std::string title;  // in tables and legends
  std::vector<std::string> arguments;
};

inline constexpr const char* kBaseline = "bf16";

struct Part {
  std::string name, title;
  std::filesystem::path model, dataset;
  std::vector<std::string> arguments;  // of loongforge train, for every recipe
  int64_t steps = 0;
  std::vector<Recipe>
      recipes;         // the first two for all seeds before the others; kBaseline is one of them
  std::string barred;  // the recipe whose gap to kBaseline must stay within bar percent
  double bar = 0;
};

// Full fine-tuning of SmolLM2-135M; steps 0: 60.
Part smollm2_part(std::filesystem::path model, std::filesystem::path dataset, int64_t steps);
// A random model of about 10 M parameters, every recipe; steps 0: 300.
Part random_part(std::filesystem::path model, std::filesystem::path dataset, int64_t steps);

struct Run {
  const Part* part = nullptr;
  const Recipe* recipe = nullptr;
  int64_t seed = 0;

  std::string id() const;                      // part/recipe/seed
  std::vector<std::string> arguments() const;  // all but paths
};

// In the order that answers soonest: part by part, baseline and barred recipe first, seed by seed.
// only: globs over id(), separated by commas; empty: all. Error(kUsage) where they match nothing.
// The runs point into parts.
std::vector<Run> plan_runs(const std::vector<Part>& parts, int64_t seeds, const std::string& only);
std::vector<Run> plan_runs(std::vector<Part>&& parts, int64_t seeds,
                           const std::string& only) = delete;

}  // namespace loongforge::bench
