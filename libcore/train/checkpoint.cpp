#include "train/checkpoint.h"

#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "train/adapter_io.h"
#include "train/checkpoint_manifest.h"
#include "train/master_model.h"
#include "train/scaling_io.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizer = "optimizer.safetensors";

void write_optimizer(const fs::path& folder, optim::AdamW& optimizer) {
  std::vector<formats::NewTensor> tensors;
  std::vector<optim::StateArray> state = optimizer.state();
  for (const optim::StateArray& a : state) tensors.push_back({a.name, tensor::DType::kF32, {a.rows, a.cols}});
  formats::SafetensorsWriter writer(folder / kOptimizer, std::move(tensors), {{"steps", std::to_string(optimizer.steps())}});
  for (const optim::StateArray& a : state)
    writer.write(a.name, {reinterpret_cast<const uint8_t*>(a.values.data()), a.values.size_bytes()});
  writer.finish();
}

// The newest `keep`, the one just written and the best one stay.
void remove_old(const fs::path& output_dir, const CheckpointState& state, int64_t keep) {
  const auto all = list_checkpoints(output_dir);
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
    const auto& [step, folder] = all[i];
    if (step == state.step || step == state.best.checkpoint_step) continue;
    try {
      remove_tree(folder);
    } catch (const Error& e) {
      log_warning(std::string("an old checkpoint cannot be removed: ") + e.what());
    }
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& output_dir, const CheckpointState& state, const CheckpointSource& source,
                         int64_t keep) {
  const fs::path final_path = output_dir / (kCheckpointPrefix + std::to_string(state.step));
  FolderWriter writer(final_path, true);
  if (source.params->options().train_all)
    write_master_model(writer.temporary(), *source.reader, *source.params);
  else
    save_adapter(writer.temporary(), source.base_model, *source.params);
  write_optimizer(writer.temporary(), *source.optimizer);
  if (source.scaling != nullptr) write_scaling(writer.temporary(), *source.scaling);
  write_text_atomic(writer.temporary() / kTrainerStateFile, trainer_state_json(state, source.facts).dump(2) + "\n");
  write_text_atomic(writer.temporary() / kOwnStateFile, own_state_json(state, source.optimizer->steps()).dump(2) + "\n");
  write_manifest(writer.temporary());
  writer.commit();
  point_link(output_dir / "latest", final_path.filename());
  if (state.best.checkpoint_step > 0)
    point_link(output_dir / "best", kCheckpointPrefix + std::to_string(state.best.checkpoint_step));
  if (keep > 0) remove_old(output_dir, state, keep);
  return final_path;
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
