// What the file system holds. std::filesystem's questions throw errors of their own ("internal
// error") for a folder that may not be searched or a name that is too long; these throw Error,
// which names the path and errno's text. What is absent is an answer: false.
// code: kNoInput for what is read, kFailed for what is to be written.
// Thread-safety: functions without shared state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/api.h"
#include "base/error.h"

namespace loongforge {

// A symbolic link counts as what it leads to; one that leads nowhere is absent.
LF_API bool path_exists(const std::filesystem::path& path, ErrorCode code = ErrorCode::kNoInput);
LF_API bool folder_exists(const std::filesystem::path& path, ErrorCode code = ErrorCode::kNoInput);
LF_API bool file_exists(const std::filesystem::path& path,  // a regular file
                        ErrorCode code = ErrorCode::kNoInput);
// The entry itself: a link is there wherever it leads.
LF_API bool entry_exists(const std::filesystem::path& path, ErrorCode code = ErrorCode::kNoInput);
LF_API bool link_exists(const std::filesystem::path& path, ErrorCode code = ErrorCode::kNoInput);

LF_API uint64_t file_bytes(const std::filesystem::path& path);  // of what must be there
// Full paths of what stands in a folder that must be there, sorted by name.
LF_API std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder,
                                                         ErrorCode code = ErrorCode::kNoInput);

// Normal, without a slash at its end. Error(kFailed) when the working directory is gone.
LF_API std::filesystem::path absolute_path(const std::filesystem::path& path);
// inner is outer or stands below it; links are followed, and what is absent counts by its name.
LF_API bool is_inside(const std::filesystem::path& inner, const std::filesystem::path& outer,
                      ErrorCode code = ErrorCode::kFailed);

// What to do about an input that is not there, where its name shows what was thought: a ~ that no
// shell replaced, a name as a hub gives it. Empty: nothing to say.
LF_API std::string absent_hint(const std::string& path);
// Error(kNoInput) "<path>: <what>" with that hint; otherwise: the hint where there is none.
[[noreturn]] LF_API void throw_absent(const std::string& path, std::string what = "does not exist",
                                      std::string otherwise = {});
// Error(kUsage) "<what> <path> ..." for an output that starts with such a ~, where no folder has
// that name.
LF_API void refuse_tilde(const std::string& what, const std::filesystem::path& output);
// "name FOLDER/snapshots/HASH" for the root of a hub's cache, which holds no model itself; empty
// for any other folder.
LF_API std::string hub_cache_hint(const std::filesystem::path& folder);

}  // namespace loongforge
