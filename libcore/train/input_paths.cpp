#include "train/input_paths.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "support/printable.h"
#include "support/unicode.h"
#include "train/adapter_io.h"
#include "train/trainer_state.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;

// What may not be looked into holds nothing that is known here.
bool holds(const fs::path& folder, const char* name) {
  std::error_code failed;
  return fs::exists(folder / name, failed);
}

bool is_source_model(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) || holds(path, "model.safetensors") ||
         holds(path, "model.safetensors.index.json") || holds(path, "config.json");
}

// Checkpoints amid what the run reads, or inside of what other commands take for one whole, would
// be lost with it or be taken for it.
void check_output_place(const TrainOptions& o) {
  const auto refuse = [&](const std::string& what) {
    throw_usage("--output_dir " + o.output_dir + " " + what, "choose a folder of its own");
  };
  const fs::path output = o.output_dir;
  for (const auto& [flag, path] :
       {std::pair("--model_path", o.model_path), std::pair("--adapter", o.adapter_path)}) {
    if (path.empty()) continue;
    const bool within = is_inside(output, path), around = is_inside(path, output);
    if (within && around) refuse(std::string("is the folder of ") + flag);
    if (within) refuse(std::string("lies in the folder of ") + flag);
    if (around) refuse(std::string("contains the folder of ") + flag);
  }
  std::error_code failed;
  fs::path real = fs::weakly_canonical(absolute_path(output), failed);
  if (failed) real = absolute_path(output);
  for (fs::path folder = real; folder.has_relative_path(); folder = folder.parent_path()) {
    if (holds(folder.parent_path(), "run_config.json") &&
        folder.filename().string().starts_with(kCheckpointPrefix))
      refuse(folder == real ? "is a checkpoint's place in a run"
                            : "lies in " + folder.string() + ", a checkpoint's place in a run");
    if (folder == real && holds(folder, "config.json") && is_source_model(folder))
      refuse("is a Hugging Face model");
    const char* kind = holds(folder, "loongir_model.json")    ? "LoongIR model"
                       : holds(folder, kOwnStateFile)         ? "checkpoint"
                       : holds(folder, "adapter_config.json") ? "PEFT adapter"
                                                              : nullptr;
    if (kind == nullptr) continue;
    if (folder == real) refuse(std::string("is a ") + kind);
    refuse("lies in " + folder.string() + ", a " + kind);
  }
}

// What is there instead of a LoongIR folder, and what to do with it. Unknown things are the
// reader's to refuse.
void check_model(const std::string& path) {
  constexpr const char* kModel = "loongir_model.json";
  constexpr const char* kAdapter = "adapter_config.json";
  if (holds(path, kModel)) return;
  const fs::path latest = fs::path(path) / "latest";
  if (holds(latest, kModel))
    throw_no_input(path, "is the folder of a run",
                   "did you mean --model_path " + latest.string() + "?");
  const bool adapter = holds(path, kAdapter);
  if (adapter || holds(latest, kAdapter))
    throw_no_input(
        path,
        adapter ? "is an adapter, not a model" : "is the folder of a run that trained an adapter",
        "name the model it was trained from as --model_path, and --adapter " +
            (adapter ? path : latest.string()));
  if (is_source_model(path))
    throw_no_input(path, "is no LoongIR folder",
                   "make one: loongforge convert --input-path " + path + " --output-path FOLDER");
}

void check_output(const TrainOptions& o) {
  if (o.output_dir.empty()) {
    if (o.dry_run) return;
    throw_usage("--output_dir is missing", "name a folder for checkpoints");
  }
  if (support::find_invalid_utf8(o.output_dir) != std::string::npos)
    throw_usage("--output_dir " + support::printable(o.output_dir, 200) + " is not UTF-8",
                "choose another name");
  const fs::path output = o.output_dir;
  refuse_tilde("--output_dir", output);
  if (path_exists(output, ErrorCode::kFailed) && !folder_exists(output))
    throw_usage("--output_dir " + o.output_dir + " is no folder");
  check_output_place(o);
  const std::string& resume = o.resume_from_checkpoint;
  if (!resume.empty() && resume != "true" && !folder_exists(resume))
    throw_absent(resume, "is no checkpoint folder");
  if (o.dry_run) return;  // writes nothing
  if (resume.empty() && !o.overwrite_output_dir &&
      path_exists(output / "run_config.json", ErrorCode::kFailed))
    throw_usage(
        o.output_dir + " already holds a run",
        "continue it with --resume_from_checkpoint, or start anew with --overwrite_output_dir");
}

}  // namespace

void check_paths(const TrainOptions& o) {
  if (!path_exists(o.model_path)) throw_absent(o.model_path);
  if (!o.adapter_path.empty()) adapter_options(o.adapter_path);
  if (!o.eval_only && o.preview == 0) check_output(o);
  check_model(o.model_path);
}

}  // namespace loongforge::train
