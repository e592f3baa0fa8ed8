#include "train/checkpoint_manifest.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/paths.h"
#include "support/json.h"
#include "train/trainer_state.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;
using support::Json;

constexpr const char* kManifest = "manifest.json";
constexpr int64_t kFormat = 2;

std::optional<int64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t skip = std::strlen(kCheckpointPrefix);
  if (!name.starts_with(kCheckpointPrefix)) return {};
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + skip, name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return step;
}

uint32_t file_crc(const fs::path& path) {
  const File file = File::open_read(path);
  const uint64_t size = file.size();
  std::vector<uint8_t> chunk(std::min<uint64_t>(size, 4 << 20));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < size; at += chunk.size()) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(chunk.size(), size - at));
    file.read_at(at, {chunk.data(), n});
    crc = crc32c({chunk.data(), n}, crc);
  }
  return crc;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : folder_entries(folder)) {
    const std::string name = entry.filename().string();
    if (name != kManifest && !name.starts_with(".")) names.push_back(name);
  }
  return names;
}

// The names that our manifest lists and its own; empty: there is none that can be read.
std::optional<std::set<std::string>> listed_names(const fs::path& folder) {
  if (!file_exists(folder / kManifest)) return {};
  try {
    const Json manifest = support::read_json((folder / kManifest).string());
    if (manifest.at("format").as_int() != kFormat) return {};
    std::set<std::string> names = {kManifest};
    for (const Json& file : manifest.at("files").as_array())
      names.insert(file.at("name").as_string());
    return names;
  } catch (const Error&) {
    return {};
  }
}

// Name by name, in the order of the manifest.
void verify_file(const fs::path& folder, const Json& file, const std::string& where,
                 std::set<std::string>* listed) {
  const std::string& name = file.at("name").as_string("name");
  if (name.empty() || name.find('/') != std::string::npos || name == ".." || name == ".")
    throw_bad_data(where, "names a file outside the checkpoint: " + name);
  if (!listed->insert(name).second) throw_bad_data(where, "names " + name + " twice");
  if (!path_exists(folder / name))
    throw_bad_data((folder / name).string(), "is missing, the manifest names it");
  const uint64_t size = file_bytes(folder / name);
  const int64_t said = file.at("bytes").as_int("bytes");
  if (static_cast<int64_t>(size) != said)
    throw_bad_data(
        (folder / name).string(),
        "has " + std::to_string(size) + " bytes, the manifest says " + std::to_string(said));
  if (static_cast<int64_t>(file_crc(folder / name)) != file.at("crc32c").as_int("crc32c"))
    throw_bad_data((folder / name).string(), "does not match its checksum");
}

void require_listed(const std::set<std::string>& listed, const std::string& where) {
  const bool lora = listed.contains("adapter_config.json");
  for (const char* name : {kTrainerStateFile, kOwnStateFile, "optimizer.safetensors",
                           lora ? "adapter_model.safetensors" : "loongir_model.json"})
    if (!listed.contains(name)) throw_bad_data(where, std::string("does not list ") + name);
}

}  // namespace

std::vector<std::pair<int64_t, fs::path>> list_checkpoints(const fs::path& output_dir) {
  std::vector<std::pair<int64_t, fs::path>> found;
  if (!folder_exists(output_dir)) return found;
  for (const fs::path& entry : folder_entries(output_dir))
    if (auto step = step_of(entry); step && folder_exists(entry) && !link_exists(entry))
      found.emplace_back(*step, entry);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  return found;
}

bool has_manifest(const fs::path& folder) { return listed_names(folder).has_value(); }

bool is_own_checkpoint(const fs::path& folder) {
  return has_manifest(folder) || file_exists(folder / kOwnStateFile) ||
         folder_entries(folder).empty();
}

std::string unlisted_entry(const fs::path& folder) {
  static const std::set<std::string> kAlways = {kManifest,
                                                kTrainerStateFile,
                                                kOwnStateFile,
                                                "optimizer.safetensors",
                                                "adapter_config.json",
                                                "adapter_model.safetensors",
                                                "scaling.safetensors"};
  std::set<std::string> listed = listed_names(folder).value_or(std::set<std::string>{});
  listed.insert(kAlways.begin(), kAlways.end());
  for (const fs::path& entry : folder_entries(folder)) {
    const std::string name = entry.filename().string();
    if (!listed.contains(name) || folder_exists(entry)) return name;
  }
  return {};
}

void remove_checkpoint(const fs::path& folder) {
  const std::set<std::string> last = {kManifest, kOwnStateFile};
  std::vector<fs::path> paths;
  for (const fs::path& entry : folder_entries(folder))
    if (!last.contains(entry.filename().string())) paths.push_back(entry);
  for (const std::string& name : last) paths.push_back(folder / name);
  for (const fs::path& path : paths) remove_tree(path);
  remove_tree(folder);
}

void write_manifest(const fs::path& folder) {
  Json files = Json::array();
  for (const std::string& name : names_in(folder)) {
    Json file = Json::object();
    file.set("name", name);
    file.set("bytes", static_cast<int64_t>(file_bytes(folder / name)));
    file.set("crc32c", static_cast<int64_t>(file_crc(folder / name)));
    files.push_back(std::move(file));
  }
  Json manifest = Json::object();
  manifest.set("format", kFormat);
  manifest.set("files", std::move(files));
  write_text_atomic(folder / kManifest, manifest.dump(2) + "\n");
}

void verify_checkpoint(const fs::path& folder) {
  const std::string where = (folder / kManifest).string();
  const Json manifest = support::read_json(where);
  std::set<std::string> listed;
  support::in_file(where, [&] {
    if (const int64_t format = manifest.get_int("format", 0); format != kFormat)
      throw_bad_data(where, "is of format " + std::to_string(format) + ", this version reads " +
                                std::to_string(kFormat));
    for (const Json& file : manifest.at("files").as_array("files"))
      verify_file(folder, file, where, &listed);
  });
  require_listed(listed, where);
  const CheckpointState state = read_state(folder);
  if (const auto step = step_of(folder); step && *step != state.step)
    throw_bad_data((folder / kTrainerStateFile).string(),
                   "is the state of step " + std::to_string(state.step));
  for (const std::string& name : names_in(folder))
    if (!listed.contains(name))
      log_warning((folder / name).string() + ": is not in the manifest and is not read");
}

std::optional<fs::path> newest_checkpoint(const fs::path& output_dir) {
  for (const auto& [step, folder] : list_checkpoints(output_dir)) {
    try {
      verify_checkpoint(folder);
      return folder;
    } catch (const std::exception& e) {
      log_warning("skipped checkpoint " + folder.string() + ": " + e.what());
    }
  }
  return {};
}

}  // namespace loongforge::train
