#include "formats/tensorboard_events.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::formats;

TEST_CASE("tensorboard: records are the bytes of its own writer") {
  const std::string x(200, 'x');
  const std::vector<TensorboardScalar> three = {
      {"train/loss", 2.5f}, {"eval/loss", -0.1f}, {x, 0.0f}};
  const std::vector<TensorboardScalar> nan = {{"t", std::numeric_limits<float>::quiet_NaN()}};
  const std::string ours =
      tensorboard_version_record(1.25) + tensorboard_start_record(1700000000.5, 7) +
      tensorboard_scalar_record(1700000001.75, 300, three) + tensorboard_scalar_record(0, 0, nan);
  CHECK(ours == test::read_file(test::data_dir() / "formats/tensorboard/golden.tfevents"));
}

TEST_CASE(
    "tensorboard: its own reader finds the values; a continued session replaces what was cut off") {
  test::TempDir dir;
  const auto write = [&](int64_t first, int64_t last, float offset) {
    TensorboardWriter writer(dir / "runs", first);
    CHECK(writer.path().filename().string().starts_with("events.out.tfevents."));
    for (int64_t step = first; step <= last; ++step) {
      const std::vector<TensorboardScalar> values = {
          {"train/loss", static_cast<float>(step) + offset},
          {"train/learning_rate", 0.25f * static_cast<float>(step)}};
      writer.scalars(step, values);
    }
  };
  write(1, 6, 0);  // killed after step 6, the checkpoint is of step 4
  {                // ... in the middle of a record
    std::ofstream torn(std::filesystem::directory_iterator(dir / "runs")->path(),
                       std::ios::app | std::ios::binary);
    torn.write("\x30\0\0\0\0\0\0\0\x01", 9);
  }
  write(5, 8, 100);
  CHECK(std::distance(std::filesystem::directory_iterator(dir / "runs"), {}) == 2);
  const std::string python = test::python_with("tensorboard");
  if (python.empty()) return;
  const test::Outcome o = test::run(
      {{python, "-c",
        "import sys\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "a = EventAccumulator(sys.argv[1]); a.Reload()\n"
        "print(sorted(a.Tags()['scalars']))\n"
        "print([(e.step, e.value) for e in a.Scalars('train/loss')])\n"
        "print([e.value for e in a.Scalars('train/learning_rate')], a.file_version)\n",
        dir / "runs"}});
  CAPTURE(o.err);
  CHECK(o.out ==
        "['train/learning_rate', 'train/loss']\n"
        "[(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 105.0), (6, 106.0), (7, 107.0), (8, 108.0)]\n"
        "[0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0] 2.0\n");
}

TEST_CASE("tensorboard: a folder that cannot be written to is named") {
  test::TempDir dir;
  test::write_file(dir / "runs", "a file");
  LF_CHECK_ERROR(TensorboardWriter(dir / "runs", 0), ErrorCode::kFailed, "runs");
}
