#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/paths.h"
#include "train/checkpoint_manifest.h"
#include "train/metric_sinks.h"
#include "train/trainer_state.h"

namespace loongforge::train {

namespace fs = std::filesystem;
namespace {

constexpr const char* kLinks[] = {"latest", "best", "final"};
constexpr const char* kEvents = "runs";

}  // namespace

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
                     "name another with --resume_from_checkpoint PATH, or start anew with "
                     "--overwrite_output_dir, which removes them");
    if (!resumed_)
      log_warning("--resume_from_checkpoint: " + path_.string() +
                  " holds no checkpoint, the run starts anew");
  } else if (!from.empty()) {
    verify_checkpoint(from);
    resumed_ = from;
  }
  return resumed_;
}

// A checkpoint is replaced by that of the same step: what others put there must not go with it.
void RunFolder::check_in_the_way(int64_t from, int64_t to) const {
  for (const auto& [step, folder] : list_checkpoints(path_)) {
    if (step <= from || step > to) continue;
    if (!is_own_checkpoint(folder))
      throw_usage(
          folder.string() + " is no checkpoint of this program, and this run would write one there",
          "move it, or choose another --output_dir");
    if (!has_manifest(folder)) continue;  // damaged: to go on from the one before it is what helps
    if (const std::string name = unlisted_entry(folder); !name.empty())
      throw_usage(
          (folder / name).string() + " is not the run's, which will replace that checkpoint",
          "move it elsewhere");
  }
}

std::vector<fs::path> RunFolder::left_by_earlier_run() const {
  std::vector<fs::path> found;
  const auto take_checkpoint = [&](const fs::path& folder) {
    if (const std::string name = unlisted_entry(folder); !name.empty())
      throw_usage("--overwrite_output_dir: " + (folder / name).string() +
                      " is not of the run that wrote " + folder.filename().string(),
                  "move it, or remove the checkpoint yourself; nothing has been removed");
    found.push_back(folder);
  };
  for (const auto& [step, folder] : list_checkpoints(path_))
    if (is_own_checkpoint(folder)) take_checkpoint(folder);
  for (const char* name : kLinks) {
    if (link_exists(path_ / name))
      found.push_back(path_ / name);
    else if (folder_exists(path_ / name) && is_own_checkpoint(path_ / name))
      take_checkpoint(path_ / name);  // a copy made without links
  }
  for (const char* name : {kTrainerStateFile, kMetricsFile})
    if (file_exists(path_ / name)) found.push_back(path_ / name);
  if (folder_exists(path_ / kEvents) && !link_exists(path_ / kEvents))
    for (const fs::path& entry : folder_entries(path_ / kEvents))
      if (entry.filename().string().starts_with("events.out.tfevents.") && file_exists(entry))
        found.push_back(entry);
  return found;
}

void RunFolder::begin(bool remove_old, int64_t from, int64_t to) {
  std::vector<fs::path> old;
  if (remove_old) old = left_by_earlier_run();
  for (const char* name : kLinks) {  // now, rather than at the first checkpoint
    const fs::path link = path_ / name;
    if (entry_exists(link) && !link_exists(link) &&
        std::find(old.begin(), old.end(), link) == old.end())
      throw_usage(link.string() + " is no link to a checkpoint",
                  "a copy made without links has such (scp -r): remove it");
  }
  check_in_the_way(from, to);
  begun_ = true;
  for (const fs::path& path : old)
    folder_exists(path) && !link_exists(path) ? remove_checkpoint(path) : remove_tree(path);
  std::error_code ignored;  // it is not empty
  if (remove_old) fs::remove(path_ / kEvents, ignored);
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
  point_link(path_ / "final",
             checkpoint.parent_path() == path_ ? checkpoint.filename() : checkpoint);
}

}  // namespace loongforge::train
