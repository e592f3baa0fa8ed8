// Where import and export read and write: finding the model inside a checkpoint folder, and
// refusing output paths that would destroy something. Thread-safety: functions without state; they
// look at the file system.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenizer.h"

namespace loongforge::convert {

// The folder itself, or its only subfolder, that holds the file `name`; Error(kNoInput) else. what:
// "LoongIR model", for it.
std::filesystem::path folder_with(const std::filesystem::path& path, std::string_view name,
                                  std::string_view what);

enum class OutputKind { kLoongIr, kHuggingFace, kPeft };

// Throws Error(kUsage) when output is no text, when it is, contains or stands inside one of the
// inputs or stands inside any LoongIR folder or checkpoint: what reads that or replaces it would
// take both for one.
void guard_place(const std::filesystem::path& output,
                 std::span<const std::filesystem::path> inputs);

// guard_place() for a folder; Error(kUsage) too when it exists and overwrite is false, and when it
// holds anything that an output of this kind does not have: what is replaced is an earlier output,
// nothing else.
void guard_output(const std::filesystem::path& output,
                  std::span<const std::filesystem::path> inputs, bool overwrite, OutputKind kind);

// Bytes of what a LoongIR folder holds beside its weights: description, tokenizer.
uint64_t bytes_beside_weights(const std::filesystem::path& model);

// Throws Error(kFailed) when the file system of output has less room than bytes.
void guard_space(const std::filesystem::path& output, uint64_t bytes);

// Writes a tokenizer's file, whose name may stand in a subfolder, into the folder under
// construction.
void write_file_of(const FolderWriter& folder, const data::TokenizerFile& file);

// The names in a finished folder, sorted.
std::vector<std::string> folder_names(const std::filesystem::path& folder);

}  // namespace loongforge::convert
