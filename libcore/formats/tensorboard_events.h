// TensorBoard event files: scalars by step, as its own writers make them (tag tensorflow.Event,
// file version brain.Event:2).
//
// A file is a row of records: length (u64), masked CRC32C of these eight bytes, one protobuf
// message, its masked CRC32C. Each record goes out in one write, so that a killed process leaves at
// most one torn record at the end, which readers skip. Thread-safety: pure functions; a writer
// belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/api.h"
#include "base/file.h"

namespace loongforge::formats {

struct TensorboardScalar {
  std::string_view tag;  // "train/loss"
  float value = 0;
};

// The records, framed. wall_time: seconds since 1970.
LF_API std::string tensorboard_version_record(double wall_time);
// A session starts (again) at this step: readers forget what an earlier one wrote from it on.
LF_API std::string tensorboard_start_record(double wall_time, int64_t step);
LF_API std::string tensorboard_scalar_record(double wall_time, int64_t step,
                                             std::span<const TensorboardScalar> scalars);

// One new file in `folder` (made when absent): events.out.tfevents.<time>.<host>.<pid>.<n>.
class LF_API TensorboardWriter {
 public:
  TensorboardWriter(const std::filesystem::path& folder, int64_t first_step);
  void scalars(int64_t step, std::span<const TensorboardScalar> values);
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  File file_;
};

}  // namespace loongforge::formats
