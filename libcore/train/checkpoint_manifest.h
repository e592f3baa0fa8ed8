// manifest.json of a checkpoint: size and CRC32C of every file, written last. What it does not say
// of a folder, or says wrongly, makes the checkpoint one that is skipped. Thread-safety: one
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loongforge::train {

// The checkpoint-<step> folders of output_dir, newest first.
std::vector<std::pair<int64_t, std::filesystem::path>> list_checkpoints(
    const std::filesystem::path& output_dir);
// Whether it has a manifest of ours that can be read; whatever the checkpoint's files are.
bool has_manifest(const std::filesystem::path& folder);
// Whether a run of this program wrote the folder: it has our manifest, or where that is damaged our
// state file, or nothing (left).
bool is_own_checkpoint(const std::filesystem::path& folder);
// An entry that the run which wrote the checkpoint did not make: one that the manifest does not
// list (one that is damaged lists nothing) and that not every checkpoint has; empty: there is none.
std::string unlisted_entry(const std::filesystem::path& folder);
// REQUIRES one of ours without such an entry. What tells so goes last: one that is left half
// removed still is ours.
void remove_checkpoint(const std::filesystem::path& folder);

void write_manifest(const std::filesystem::path& folder);
// Throws Error(kBadData / kNoInput) naming the file that is missing, of another size or checksum,
// not listed though resuming reads it, or the step that is not the folder's. Other files that the
// manifest does not list are not read: a warning.
void verify_checkpoint(const std::filesystem::path& folder);
// The newest checkpoint of output_dir that verifies; what is wrong with newer ones is logged.
// Empty: there is none.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);

}  // namespace loongforge::train
