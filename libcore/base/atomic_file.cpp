#include "base/atomic_file.h"

#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/file_ops.h"

namespace loongforge {
namespace {

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() / ("." + path.filename().string().substr(0, 200) + ".tmp-" + std::to_string(getpid()) +
                               "-" + std::to_string(counter.fetch_add(1)));
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path final_path)
    : final_(std::move(final_path)),
      temporary_(temporary_beside(final_)),
      file_(File::create(temporary_)) {
  flock(file_.fd(), LOCK_EX | LOCK_NB);  // says that we live
  recover_left_over(final_);             // what a killed one left
}

AtomicFile::~AtomicFile() {
  if (!committed_) file_ops::remove_entry(temporary_);
}

void AtomicFile::commit() {
  file_.sync();
  file_.close();
  rename_path(temporary_, final_);
  committed_ = true;
  sync_folder(final_.has_parent_path() ? final_.parent_path() : std::filesystem::path("."));
}

}  // namespace loongforge
