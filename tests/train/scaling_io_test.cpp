#include "train/scaling_io.h"

#include <doctest/doctest.h>

#include <cmath>

#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;

namespace {

quant::Recipe adaptive() {
  quant::Recipe recipe;
  recipe.scales = quant::ScaleRecipe::kDelayed;
  recipe.adaptive_bias = true;
  return recipe;
}

void write_one(const std::filesystem::path& folder, const std::string& name,
               const std::vector<float>& values) {
  formats::SafetensorsWriter writer(
      folder / train::kScalingFile,
      {{name, tensor::DType::kF32, {static_cast<int64_t>(values.size())}}}, {});
  writer.write(name, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4});
  writer.finish();
}

}  // namespace

TEST_CASE("delayed scaling goes through a checkpoint unchanged") {
  const test::TempDir dir;
  CHECK(train::read_scaling(dir.path()).empty());
  quant::ScalingState state(adaptive());
  train::write_scaling(dir.path(), state);
  CHECK_FALSE(std::filesystem::exists(dir / train::kScalingFile));
  for (int step = 1; step <= 3; ++step) {
    state.observe("a.input", static_cast<float>(step));
    state.observe("a.grad", 0.5f / static_cast<float>(step));
    std::vector<int64_t> bins(kernels::kBinades, 0);
    bins[100] = step * 1000;
    state.observe_binades("a.grad", bins);
    state.end_step({}, false);
  }
  train::write_scaling(dir.path(), state);
  const auto read = train::read_scaling(dir.path());
  REQUIRE(read.size() == 2);
  for (const auto& [name, t] : state.tensors()) {
    CHECK(read.at(name).amax == t.amax);
    CHECK(read.at(name).binades == t.binades);
  }
}

TEST_CASE("a state that was not written so is refused") {
  const test::TempDir dir;
  for (float bad : {-1.0f, HUGE_VALF, NAN}) {
    write_one(dir.path(), "a.input.amax", {1.0f, bad});
    LF_CHECK_ERROR(train::read_scaling(dir.path()), ErrorCode::kBadData, "a.input.amax");
  }
  write_one(dir.path(), "a.grad.binades", {1.0f});
  LF_CHECK_ERROR(train::read_scaling(dir.path()), ErrorCode::kBadData, "a.grad.binades");
  write_one(dir.path(), "a.input.something", {1.0f});
  LF_CHECK_ERROR(train::read_scaling(dir.path()), ErrorCode::kBadData, "does not belong");
}
