// The folder that a run writes to: made and locked for as long as this object lives, cleaned of
// what a killed run left half written, and left as it was found when the run is refused before it
// begins. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace loongforge::train {

class RunFolder {
 public:
  // Throws Error: it cannot be made or written to, another run uses it.
  explicit RunFolder(std::filesystem::path path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // What --resume_from_checkpoint names, verified: "true" is the newest checkpoint that verifies,
  // empty none.
  std::optional<std::filesystem::path> resume(const std::string& from);
  // From here on the folder is this run's, which writes checkpoints of the steps above `from` up to
  // `to`. remove_old: what an earlier run wrote goes, and nothing else. Error(kUsage), before
  // anything is removed, where that would cost other files or other files are in the way.
  void begin(bool remove_old, int64_t from = 0, int64_t to = INT64_MAX);
  // The checkpoint of a step: here, or beside the one resumed from where the run was continued in
  // another folder.
  std::filesystem::path checkpoint(int64_t step) const;
  // `final` names the checkpoint that is the run's result.
  void point_final(const std::filesystem::path& checkpoint);

 private:
  void check_in_the_way(int64_t from, int64_t to) const;
  std::vector<std::filesystem::path> left_by_earlier_run() const;

  std::filesystem::path path_;
  std::optional<std::filesystem::path> resumed_;
  int lock_ = -1;
  bool created_ = false, begun_ = false;
};

}  // namespace loongforge::train
