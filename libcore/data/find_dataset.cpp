// Datasets by path or by name.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/paths.h"
#include "data/dataset.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kExtensions = {".json", ".jsonl", ".txt"};

std::optional<fs::path> dataset_folder() {
  if (const auto data = env_text("LOONGFORGE_DATA")) return fs::path(*data);
  if (const auto home = env_text("LOONGFORGE_HOME")) return fs::path(*home) / "share" / "data";
  return std::nullopt;
}

std::string known_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const fs::path& path = entry->path();
    const bool ours = std::find(kExtensions.begin(), kExtensions.end(),
                                path.extension().string()) != kExtensions.end();
    std::error_code failed;
    if (ours && entry->is_regular_file(failed)) names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (list.empty()) return "there are no datasets in " + folder.string();
  return "known in " + folder.string() + ": " + list;
}

}  // namespace

fs::path find_dataset(const std::string& path_or_name) {
  const bool is_folder = folder_exists(path_or_name);
  if (!is_folder && path_exists(path_or_name)) return path_or_name;
  const std::optional<fs::path> folder = dataset_folder();
  if (folder && !path_or_name.empty()) {
    fs::path named = *folder / path_or_name;
    std::error_code failed;
    if (fs::is_regular_file(named, failed)) return named;
    for (std::string_view extension : kExtensions) {
      fs::path with = named;
      with += extension;
      if (fs::is_regular_file(with, failed)) return with;
    }
  }
  const std::string cache = is_folder ? hub_cache_hint(path_or_name) : std::string();
  if (!cache.empty()) throw_no_input(path_or_name, "is a folder, not a dataset file", cache);
  throw_absent(path_or_name,
               is_folder ? "is a folder, not a dataset file" : "no such file or dataset",
               folder ? known_names(*folder)
                      : "datasets are found by name when LOONGFORGE_DATA names their folder");
}

}  // namespace loongforge::data
