// --fp8_activations compute on a CPU that multiplies FP8, played by a scalar model in the slot of
// kernels/native_fp8.h: its products are given the codes.
#include "kernels/native_fp8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "graph/tiny_models.h"
#include "kernels/native_model.h"

using namespace loongforge;
using namespace loongforge::test;
using kernels::test::native_calls;
using kernels::test::native_questions;
using kernels::test::UseNative;
using quant::Activations;
using quant::RunPrecision;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    diff += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(diff / norm);
}

// Every third element falls away.
class EveryThird final : public graph::MaskSource {
 public:
  void fill(uint32_t, int64_t rows, int64_t row_bytes, double, uint8_t* mask) const override {
    for (int64_t i = 0; i < rows * row_bytes * 8; ++i) {
      if (i % 8 == 0) mask[i / 8] = 0;
      if (i % 3 != 0) mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | 1 << i % 8);
    }
  }
};

TinyRun run_of(Activations activations, RunPrecision precision, bool full) {
  TinyRun run;
  run.recipe.activations = activations;
  run.recipe.precision = precision;
  run.full = full;
  return run;
}

}  // namespace

TEST_CASE(
    "native FP8: compute gives its products the codes; refused ones have the bits of decoding") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch({37, 1, 90, 12}, 384);
  for (const RunPrecision precision : {RunPrecision::kFp8, RunPrecision::kHybrid}) {
    for (const bool full : {true, false}) {
      INFO((full ? "full" : "lora"));
      const TinyRun run = run_of(Activations::kCompute, precision, full);
      const TinyResult want = run_tiny(model, run, batch);
      {
        const UseNative native(false);
        const TinyResult refused = run_tiny(model, run, batch);
        CHECK(native_questions > 0);
        CHECK(native_calls == 0);
        CHECK(same_bits(refused.logits, want.logits));
        CHECK(same_bits(refused.gradients, want.gradients));
        CHECK(refused.stats.loss_sum == want.stats.loss_sum);
      }
      const UseNative native(true);
      const TinyResult got = run_tiny(model, run, batch);
      CHECK(native_calls > 0);
      // Another order of sums, and what FP8 rounding makes of that.
      CHECK(difference(got.logits, want.logits) < 0.01);
      CHECK(difference(got.gradients, want.gradients) < 0.05);
    }
  }
}

TEST_CASE("native FP8: with dropout the masked input is that of the decoded codes") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch({37, 20}, 384);
  TinyRun run = run_of(Activations::kCompute, RunPrecision::kFp8, false);
  run.dropout = 0.25;
  const EveryThird masks;
  const TinyResult want = run_tiny(model, run, batch, &masks);
  const UseNative native(false);
  const TinyResult got = run_tiny(model, run, batch, &masks);
  CHECK(native_questions > 0);
  CHECK(same_bits(got.gradients, want.gradients));
}

TEST_CASE("native FP8: no other recipe asks for it") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch({37, 20}, 384);
  for (const Activations activations : {Activations::kSaved, Activations::kOff}) {
    const TinyRun run = run_of(activations, RunPrecision::kFp8, true);
    const TinyResult want = run_tiny(model, run, batch);
    const UseNative native(true);
    const TinyResult got = run_tiny(model, run, batch);
    CHECK(native_questions == 0);
    CHECK(native_calls == 0);
    CHECK(same_bits(got.gradients, want.gradients));
  }
}
