#include "train/optimizer_io.h"

#include <doctest/doctest.h>

#include <cmath>

#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "train/rounding.h"

using namespace loongforge;
using optim::MomentFormat;

namespace {

std::vector<optim::ParameterView> views() {
  return {{"a", 3, 130, 0, true}, {"b", 1, 17, 400, false}};
}

optim::AdamW make(MomentFormat moments, train::Sm4Rounding* rounding) {
  optim::AdamWOptions options;
  options.moments = moments;
  options.rounding = rounding;
  return optim::AdamW(views(), options);
}

void train_a_little(optim::AdamW* adamw) {
  ThreadPool pool(1);
  std::vector<float> p(420, 0.5f), g(420);
  for (int step = 1; step <= 3; ++step) {
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = 1e-3f * static_cast<float>((i * 37 + static_cast<size_t>(step)) % 101) - 0.05f;
    adamw->step(p.data(), g.data(), 1e-3, 1.0, pool);
  }
}

}  // namespace

TEST_CASE("moments come back to the bit, and as numbers where the format differs") {
  train::Sm4Rounding rounding(1, 1);
  for (const MomentFormat from : {MomentFormat::kF32, MomentFormat::kBf16, MomentFormat::kFp8}) {
    const test::TempDir dir;
    optim::AdamW written = make(from, &rounding);
    train_a_little(&written);
    train::write_optimizer(dir.path(), written);
    for (const MomentFormat to : {MomentFormat::kF32, MomentFormat::kBf16, MomentFormat::kFp8}) {
      INFO(optim::moment_format_name(from), " to ", optim::moment_format_name(to));
      optim::AdamW read = make(to, &rounding);
      train::read_optimizer(dir.path(), 3, read);
      CHECK(read.steps() == 3);
      const auto state = read.state(), want = written.state();
      if (from == to) {
        for (size_t i = 0; i < state.size(); ++i)
          CHECK(std::equal(state[i].bytes.begin(), state[i].bytes.end(), want[i].bytes.begin(),
                           want[i].bytes.end()));
      }
      if (to != MomentFormat::kF32) continue;
      // As numbers: within the format's last place of what fp32 would hold.
      optim::AdamW exact = make(MomentFormat::kF32, &rounding);
      train_a_little(&exact);
      const auto numbers = exact.state();
      const double bound = from == MomentFormat::kF32    ? 0
                           : from == MomentFormat::kBf16 ? 0.03
                                                         : 0.5;
      double diff = 0, norm = 0;
      for (size_t i = 0; i < numbers.size(); ++i)
        for (size_t j = 0; j < numbers[i].values().size(); ++j) {
          diff += std::pow(static_cast<double>(numbers[i].values()[j]) - state[i].values()[j], 2);
          norm += std::pow(static_cast<double>(numbers[i].values()[j]), 2);
        }
      CHECK(std::sqrt(diff / norm) <= bound);
    }
  }
}

TEST_CASE("a state that is not this optimizer's is refused by name") {
  train::Sm4Rounding rounding(1, 1);
  const test::TempDir dir;
  optim::AdamW written = make(MomentFormat::kFp8, &rounding);
  train_a_little(&written);
  train::write_optimizer(dir.path(), written);
  optim::AdamW late = make(MomentFormat::kFp8, &rounding);
  LF_CHECK_ERROR(train::read_optimizer(dir.path(), 2, late), ErrorCode::kBadData,
                 "after how many steps");
  for (const MomentFormat to : {MomentFormat::kF32, MomentFormat::kFp8}) {
    optim::AdamWOptions options;
    options.moments = to;
    options.rounding = &rounding;
    optim::AdamW wider({{"a", 3, 131, 0, true}, {"b", 1, 17, 400, false}}, options);
    LF_CHECK_ERROR(train::read_optimizer(dir.path(), 3, wider), ErrorCode::kBadData, "a.exp_avg");
    optim::AdamW other({{"c", 3, 130, 0, true}}, options);
    LF_CHECK_ERROR(train::read_optimizer(dir.path(), 3, other), ErrorCode::kBadData, "c.exp_avg");
  }
}
