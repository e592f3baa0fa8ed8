#include "train/checkpoint.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "train/adapter_io.h"
#include "train/checkpoint_manifest.h"
#include "train/master_model.h"
#include "train/optimizer_io.h"
#include "train/scaling_io.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;

// The newest `keep`, the one just written and the best one stay, and all that is not ours alone.
void remove_old(const fs::path& output_dir, const CheckpointState& state, int64_t keep) {
  int64_t newer = 0;
  for (const auto& [step, folder] : list_checkpoints(output_dir)) {
    if (!is_own_checkpoint(folder) || ++newer <= keep) continue;
    if (step == state.step || step == state.best.checkpoint_step) continue;
    if (const std::string name = unlisted_entry(folder); !name.empty()) {
      log_warning("an old checkpoint is kept: " + (folder / name).string() + " is not the run's");
      continue;
    }
    try {
      remove_checkpoint(folder);
    } catch (const Error& e) {
      log_warning(std::string("an old checkpoint cannot be removed: ") + e.what());
    }
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& output_dir, const CheckpointState& state,
                         const CheckpointSource& source, int64_t keep) {
  const fs::path final_path = output_dir / (kCheckpointPrefix + std::to_string(state.step));
  FolderWriter writer(final_path, true);
  if (source.params->options().train_all)
    write_master_model(writer.temporary(), *source.reader, *source.params);
  else
    save_adapter(writer.temporary(), source.base_model, *source.params);
  write_optimizer(writer.temporary(), *source.optimizer);
  if (source.scaling != nullptr) write_scaling(writer.temporary(), *source.scaling);
  write_text_atomic(writer.temporary() / kTrainerStateFile,
                    trainer_state_json(state, source.facts).dump(2) + "\n");
  write_text_atomic(writer.temporary() / kOwnStateFile,
                    own_state_json(state, source.optimizer->steps()).dump(2) + "\n");
  write_manifest(writer.temporary());
  writer.commit();
  point_link(output_dir / "latest", final_path.filename());
  if (state.best.checkpoint_step > 0)
    point_link(output_dir / "best", kCheckpointPrefix + std::to_string(state.best.checkpoint_step));
  if (keep > 0) remove_old(output_dir, state, keep);
  return final_path;
}

void restore(const fs::path& folder, const CheckpointState& state, graph::Parameters& params,
             optim::AdamW& optimizer, ThreadPool& pool) {
  if (!params.options().train_all) load_adapter(folder, params, pool);
  read_optimizer(folder, state.step, optimizer);
}

uint64_t checkpoint_bytes(const graph::Parameters& params, const optim::AdamW& optimizer,
                          const ir::Reader& model) {
  constexpr uint64_t kDescriptions = uint64_t{1}
                                     << 20;  // JSON files, disk blocks that are not full
  uint64_t bytes =
      optim::AdamW::state_bytes(optimizer.views(), optimizer.moments()) + kDescriptions;
  for (const graph::Trainable& t : params.trainables())
    bytes += static_cast<uint64_t>(t.size()) * (t.master == kernels::Elem::kBf16 ? 2 : 4);
  return bytes + (params.options().train_all ? bytes_beside_weights(model.folder()) : 0);
}

}  // namespace loongforge::train
