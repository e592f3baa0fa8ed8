// A file that appears under its final name complete or not at all: written as a sibling temporary
// file (.<name>.tmp-<pid>-<n>), synced, renamed. Left without commit() (an exception), the
// temporary file is removed; what a killed one left behind goes with the next one of the same final
// path. Thread-safety: as File.
#pragma once

#include <filesystem>

#include "base/api.h"
#include "base/file.h"

namespace loongforge {

class LF_API AtomicFile {
 public:
  // The folder must exist. Errors as File::create, naming final_path; Error(kUsage) where something
  // other than a regular file stands at final_path: a rename would take a device, a pipe or a
  // symbolic link out of the system.
  explicit AtomicFile(std::filesystem::path final_path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  File& file() noexcept { return file_; }
  const std::filesystem::path& final_path() const noexcept { return final_; }
  void commit();  // syncs, closes, renames over what stands there, syncs the folder

 private:
  std::filesystem::path final_, temporary_;
  File file_;
  bool committed_ = false;
};

}  // namespace loongforge
