#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/paths.h"
#include "train/checkpoint_manifest.h"
#include "train/trainer_state.h"

namespace loongforge::train {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(path.lexically_normal()) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
  created_ = !path_exists(path_, ErrorCode::kFailed);
  make_folders(path_);
  lock_ = ::open((path_ / ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    const int error = errno;
    throw_failed(path_.string(), "cannot be written to: " + std::generic_category().message(error));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(lock_, -1));  // the file is the other run's
    throw_usage(path_.string() + " is in use by another run", "choose another --output_dir");
  }
  recover_folders(path_);
}

RunFolder::~RunFolder() {
  if (!begun_) {  // as if it had never been
    std::error_code ignored;
    fs::remove(path_ / ".lock", ignored);
    if (created_) fs::remove(path_, ignored);
  }
  ::close(lock_);  // releases the lock
}

std::optional<fs::path> RunFolder::resume(const std::string& from) {
  if (from == "true") {
    resumed_ = newest_checkpoint(path_);
    if (!resumed_ && !list_checkpoints(path_).empty())
      throw_bad_data(path_.string(), "holds no checkpoint that is whole",
                     "name another with --resume_from_checkpoint PATH, or start anew with --overwrite_output_dir, which removes them");
    if (!resumed_) log_warning("--resume_from_checkpoint: " + path_.string() + " holds no checkpoint, the run starts anew");
  } else if (!from.empty()) {
    verify_checkpoint(from);
    resumed_ = from;
  }
  return resumed_;
}

void RunFolder::begin(bool remove_old) {
  static const std::set<std::string> kLinks = {"latest", "best", "final"};
  for (const std::string& name : kLinks) {  // now, rather than at the first checkpoint
    if (!remove_old && entry_exists(path_ / name) && !link_exists(path_ / name))
      throw_usage((path_ / name).string() + " is no link to a checkpoint", "a copy made without links has such (scp -r): remove it");
  }
  begun_ = true;
  if (!remove_old) return;
  static const std::set<std::string> kOurs = {kTrainerStateFile, "metrics.jsonl", "runs"};
  for (const fs::path& entry : folder_entries(path_)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kCheckpointPrefix) || kOurs.contains(name) || kLinks.contains(name)) remove_tree(entry);
  }
}

fs::path RunFolder::checkpoint(int64_t step) const {
  const std::string name = kCheckpointPrefix + std::to_string(step);
  if (resumed_ && !path_exists(path_ / name)) {
    const fs::path elsewhere = absolute_path(*resumed_).parent_path() / name;
    if (path_exists(elsewhere)) return elsewhere;
  }
  return path_ / name;
}

void RunFolder::point_final(const fs::path& checkpoint) {
  point_link(path_ / "final", checkpoint.parent_path() == path_ ? checkpoint.filename() : checkpoint);
}

}  // namespace loongforge::train
