#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "train/adapter_io.h"
#include "train/master_model.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;
using support::Json;

constexpr const char* kPrefix = "checkpoint-";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "trainer_state.json";

std::optional<int64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t skip = std::strlen(kPrefix);
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + skip, name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return step;
}

// Newest first.
std::vector<std::pair<int64_t, fs::path>> checkpoints(const fs::path& output_dir) {
  std::vector<std::pair<int64_t, fs::path>> found;
  if (!fs::is_directory(output_dir)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(output_dir))
    if (auto step = step_of(entry.path()); step && entry.is_directory() && !entry.is_symlink())
      found.emplace_back(*step, entry.path());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return found;
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

void write_optimizer(const fs::path& folder, optim::AdamW& optimizer) {
  std::vector<formats::NewTensor> tensors;
  std::vector<optim::StateArray> state = optimizer.state();
  for (const optim::StateArray& a : state) tensors.push_back({a.name, tensor::DType::kF32, {a.rows, a.cols}});
  formats::SafetensorsWriter writer(folder / kOptimizer, std::move(tensors), {{"steps", std::to_string(optimizer.steps())}});
  for (const optim::StateArray& a : state)
    writer.write(a.name, {reinterpret_cast<const uint8_t*>(a.values.data()), a.values.size_bytes()});
  writer.finish();
}

Json state_json(const CheckpointState& state, const CheckpointSource& source) {
  Json json = Json::object();
  json.set("best_metric", Json());
  json.set("best_model_checkpoint", Json());
  json.set("epoch", source.epoch);
  json.set("global_step", state.step);
  json.set("is_world_process_zero", true);
  json.set("log_history", state.log_history);
  json.set("max_steps", source.max_steps);
  json.set("num_input_tokens_seen", state.tokens_seen);
  Json ours = Json::object();
  ours.set("nonfinite_steps", state.nonfinite_steps);
  ours.set("optimizer_steps", source.optimizer->steps());
  ours.set("run", state.run);
  json.set("loongforge", std::move(ours));
  return json;
}

void write_manifest(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  Json files = Json::array();
  for (const std::string& name : names) {
    Json file = Json::object();
    file.set("name", name);
    file.set("bytes", static_cast<int64_t>(fs::file_size(folder / name)));
    file.set("crc32c", static_cast<int64_t>(file_crc(folder / name)));
    files.push_back(std::move(file));
  }
  Json manifest = Json::object();
  manifest.set("format", 1);
  manifest.set("files", std::move(files));
  write_text_atomic(folder / kManifest, manifest.dump(2) + "\n");
}

void point_latest(const fs::path& output_dir, const std::string& name) {
  point_link(output_dir / "latest", name);
}

}  // namespace

fs::path save_checkpoint(const fs::path& output_dir, const CheckpointState& state, const CheckpointSource& source,
                         int64_t keep) {
  const fs::path final_path = output_dir / (kPrefix + std::to_string(state.step));
  FolderWriter writer(final_path, true);
  if (source.params->options().train_all)
    write_master_model(writer.temporary(), *source.reader, *source.params);
  else
    save_adapter(writer.temporary(), source.base_model, *source.params);
  write_optimizer(writer.temporary(), *source.optimizer);
  write_text_atomic(writer.temporary() / kState, state_json(state, source).dump(2) + "\n");
  write_manifest(writer.temporary());
  writer.commit();
  point_latest(output_dir, final_path.filename().string());
  if (keep > 0) {
    const auto all = checkpoints(output_dir);
    for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
      std::error_code error;
      fs::remove_all(all[i].second, error);
      if (error) log_warning(all[i].second.string() + ": an old checkpoint cannot be removed: " + error.message());
    }
  }
  return final_path;
}

void verify_checkpoint(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  const Json manifest = support::read_json(path.string());
  if (manifest.get_int("format", 0) != 1) throw_bad_data(path.string(), "is no manifest of format 1");
  for (const Json& file : manifest.at("files", path.string()).as_array("files")) {
    const std::string& name = file.at("name", path.string()).as_string("name");
    if (name.empty() || name.find('/') != std::string::npos || name == "..")
      throw_bad_data(path.string(), "names a file outside the checkpoint: " + name);
    std::error_code error;
    const uint64_t size = fs::file_size(folder / name, error);
    if (error) throw_no_input((folder / name).string(), "is missing");
    if (static_cast<int64_t>(size) != file.at("bytes", path.string()).as_int("bytes"))
      throw_bad_data((folder / name).string(), "has " + std::to_string(size) + " bytes, the manifest says otherwise");
    if (static_cast<int64_t>(file_crc(folder / name)) != file.at("crc32c", path.string()).as_int("crc32c"))
      throw_bad_data((folder / name).string(), "does not match its checksum");
  }
}

std::optional<fs::path> newest_checkpoint(const fs::path& output_dir) {
  for (const auto& [step, folder] : checkpoints(output_dir)) {
    try {
      verify_checkpoint(folder);
      return folder;
    } catch (const Error& e) {
      log_warning("skipped checkpoint " + folder.string() + ": " + e.what());
    }
  }
  return {};
}

CheckpointState read_state(const fs::path& folder) {
  const std::string where = (folder / kState).string();
  const Json json = support::read_json(where);
  CheckpointState state;
  state.step = json.at("global_step", where).as_int("global_step");
  state.tokens_seen = json.get_int("num_input_tokens_seen", 0);
  state.log_history = json.at("log_history", where);
  const Json& ours = json.at("loongforge", where);
  state.nonfinite_steps = ours.get_int("nonfinite_steps", 0);
  state.run = ours.at("run", where);
  return state;
}

void restore(const fs::path& folder, const CheckpointState& state, graph::Parameters& params, optim::AdamW& optimizer,
             ThreadPool& pool) {
  if (!params.options().train_all) load_adapter(folder, params, pool);
  const formats::SafetensorsFile file(folder / kOptimizer);
  for (optim::StateArray& a : optimizer.state()) {
    const formats::StoredTensor& t = file.at(a.name);
    if (t.dtype != tensor::DType::kF32 || t.bytes != a.values.size_bytes())
      throw_bad_data(t.where(), "is not the moment array that this run needs");
    file.read_range(t, 0, {reinterpret_cast<uint8_t*>(a.values.data()), a.values.size_bytes()});
  }
  const auto steps = file.metadata().find("steps");
  int64_t done = 0;
  if (steps == file.metadata().end() ||
      std::from_chars(steps->second.data(), steps->second.data() + steps->second.size(), done).ec != std::errc() ||
      done < 0 || done > state.step)
    throw_bad_data((folder / kOptimizer).string(), "does not say after how many steps it was written");
  optimizer.set_steps(done);
}

uint64_t checkpoint_bytes(const graph::Parameters& params) {
  return static_cast<uint64_t>(params.trainable_floats()) * 3 * sizeof(float) + (uint64_t{32} << 20);
}

}  // namespace loongforge::train
