// The folder that a run writes to: made and locked for as long as this object lives, cleaned of what a killed run left half
// written, and left as it was found when the run is refused before it begins.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace loongforge::train {

class RunFolder {
 public:
  // Throws Error: it cannot be made or written to, another run uses it.
  explicit RunFolder(std::filesystem::path path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // What --resume_from_checkpoint names, verified: "true" is the newest checkpoint that verifies, empty none.
  std::optional<std::filesystem::path> resume(const std::string& from);
  // From here on the folder is this run's. remove_old: what an earlier run left goes.
  void begin(bool remove_old);
  // The checkpoint of a step: here, or beside the one resumed from where the run was continued in another folder.
  std::filesystem::path checkpoint(int64_t step) const;
  // `final` names the checkpoint that is the run's result.
  void point_final(const std::filesystem::path& checkpoint);

 private:
  std::filesystem::path path_;
  std::optional<std::filesystem::path> resumed_;
  int lock_ = -1;
  bool created_ = false, begun_ = false;
};

}  // namespace loongforge::train
