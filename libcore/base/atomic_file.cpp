#include "base/atomic_file.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/stop.h"

namespace loongforge {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::filesystem::path replaceable(std::filesystem::path path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    throw_usage(path.string() + ": is " + kind_of(info.st_mode) + ", which a file cannot replace",
                "name a file");
  return path;
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary;
  struct stat info;
  do {  // a name that is taken: left by a killed process that had our number
    temporary = path.parent_path() /
                ("." + path.filename().string().substr(0, 200) + ".tmp-" +
                 std::to_string(getpid()) + "-" + std::to_string(counter.fetch_add(1)));
  } while (lstat(temporary.c_str(), &info) == 0);
  return temporary;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path final_path)
    : final_(replaceable(std::move(final_path))),
      temporary_(temporary_beside(final_)),
      file_(File::create(temporary_, final_)) {
  flock(file_.fd(), LOCK_EX | LOCK_NB);  // says that we live
  recover_left_over(final_);             // what a killed one left
}

AtomicFile::~AtomicFile() {
  if (!committed_) file_ops::remove_entry(temporary_);
}

void AtomicFile::commit() {
  file_.sync();
  file_.close();
  check_stop();
  replaceable(final_);
  rename_path(temporary_, final_);
  committed_ = true;
  sync_folder(final_.has_parent_path() ? final_.parent_path() : std::filesystem::path("."));
}

void write_text_atomic(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.file().write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  file.commit();
}

}  // namespace loongforge
