// manifest.json of a checkpoint: size and CRC32C of every file, written last. What it does not say of a folder, or says
// wrongly, makes the checkpoint one that is skipped.
// Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace loongforge::train {

// The checkpoint-<step> folders of output_dir, newest first.
std::vector<std::pair<int64_t, std::filesystem::path>> list_checkpoints(const std::filesystem::path& output_dir);

void write_manifest(const std::filesystem::path& folder);
// Throws Error(kBadData / kNoInput) naming the file that is missing, of another size or checksum, not listed though resuming
// reads it, or the step that is not the folder's. Other files that the manifest does not list are not read: a warning.
void verify_checkpoint(const std::filesystem::path& folder);
// The newest checkpoint of output_dir that verifies; what is wrong with newer ones is logged. Empty: there is none.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);

}  // namespace loongforge::train
