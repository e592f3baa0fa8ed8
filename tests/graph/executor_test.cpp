#include "graph/executor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "graph/tiny_models.h"
#include "kernels/isa.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double relative(const std::vector<float>& a, const std::vector<float>& b) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    diff += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(diff / norm);
}

// Keeps every third element of a row out; the same for every call, as a fixed seed would.
class ThirdMask final : public graph::MaskSource {
 public:
  void fill(uint32_t stream, int64_t rows, int64_t row_bytes, double,
            uint8_t* bits) const override {
    for (int64_t i = 0; i < rows * row_bytes; ++i)
      bits[i] = static_cast<uint8_t>(0xB6 ^ (stream * 5 + static_cast<uint32_t>(i) * 3));
  }
};

const std::vector<int64_t> kLengths = {37, 1, 90, 12};

}  // namespace

TEST_CASE("losses and gradients have the same bits for every number of threads") {
  const TinyModel model("llama3", "fp8");
  for (bool full : {true, false}) {
    TinyRun run;
    run.full = full;
    const graph::Batch batch = random_batch(kLengths, 512);
    run.threads = 1;
    const TinyResult one = run_tiny(model, run, batch);
    for (int threads : {2, 3, 5}) {
      run.threads = threads;
      const TinyResult many = run_tiny(model, run, batch);
      CHECK(one.stats.loss_sum == many.stats.loss_sum);
      CHECK(same_bits(one.gradients, many.gradients));
      CHECK(same_bits(one.logits, many.logits));
    }
  }
}

TEST_CASE("losses and gradients have the same bits on every ISA") {
  const kernels::Isa before = kernels::active_isa();
  struct Case {
    const char* model;
    quant::RunPrecision format;
  };
  // A tied head; a window, norms of heads and biases; biases everywhere; long windows of few kv
  // heads.
  const Case cases[] = {
      {"smollm2", quant::RunPrecision::kFp8},       {"smollm2", quant::RunPrecision::kBf16},
      {"smollm2", quant::RunPrecision::kFp32},      {"qwen3_window", quant::RunPrecision::kFp8},
      {"qwen3_window", quant::RunPrecision::kFp32}, {"llama_bias", quant::RunPrecision::kBf16},
      {"mistral", quant::RunPrecision::kFp8}};
  for (const Case& each : cases) {
    const TinyModel model(each.model, each.format == quant::RunPrecision::kFp32 ? "fp32" : "bf16");
    const graph::Batch batch = random_batch(kLengths, vocab_of(model));
    for (bool full : {true, false}) {
      TinyRun run;
      run.recipe.precision = each.format;
      run.full = full;
      kernels::set_active_isa(kernels::Isa::kScalar);
      const TinyResult scalar = run_tiny(model, run, batch);
      for (kernels::Isa isa : kernels::testable_isas()) {
        REQUIRE(kernels::set_active_isa(isa));
        const TinyResult vector = run_tiny(model, run, batch);
        CAPTURE(kernels::isa_name(isa));
        CAPTURE(each.model);
        CHECK(scalar.stats.loss_sum == vector.stats.loss_sum);
        CHECK(same_bits(scalar.gradients, vector.gradients));
        CHECK(same_bits(scalar.logits, vector.logits));
      }
    }
  }
  kernels::set_active_isa(before);
}

TEST_CASE("gradient checkpointing changes not a bit of any family's results") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const TinyModel model(name, "bf16");
    const graph::Batch batch = random_batch({37, 1, 20}, vocab_of(model));
    for (bool full : {true, false}) {
      TinyRun run;
      run.full = full;
      const TinyResult saved = run_tiny(model, run, batch);
      run.plan.gradient_checkpointing = true;
      const TinyResult recomputed = run_tiny(model, run, batch);
      CHECK(saved.stats.loss_sum == recomputed.stats.loss_sum);
      CHECK(same_bits(saved.gradients, recomputed.gradients));
    }
  }
}

TEST_CASE("gradient checkpointing changes memory, not a bit of the results") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 512);
  for (auto format :
       {quant::RunPrecision::kFp8, quant::RunPrecision::kBf16, quant::RunPrecision::kFp32}) {
    for (bool full : {true, false}) {
      TinyRun run;
      run.recipe.precision = format;
      run.full = full;
      const TinyResult saved = run_tiny(model, run, batch);
      run.plan.gradient_checkpointing = true;
      const TinyResult recomputed = run_tiny(model, run, batch);
      CHECK(saved.stats.loss_sum == recomputed.stats.loss_sum);
      CHECK(same_bits(saved.gradients, recomputed.gradients));
    }
  }
  TinyRun run;
  ThreadPool pool(1);
  auto params = load_tiny(model, run, pool);
  graph::Executor saves(graph::make_plan(model.reader().model(), *params, plan_for(run)), *params,
                        pool);
  run.plan.gradient_checkpointing = true;
  graph::Executor recomputes(graph::make_plan(model.reader().model(), *params, plan_for(run)),
                             *params, pool);
  CHECK(recomputes.arena_bytes(4096) < saves.arena_bytes(4096));
}

TEST_CASE("joined linears equal separate ones within 1e-5") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  const graph::Batch batch = random_batch({40, 25}, 256);
  const TinyResult joined = run_tiny(model, run, batch);
  run.plan.join_linears = false;
  const TinyResult apart = run_tiny(model, run, batch);
  CHECK(same_bits(joined.logits, apart.logits));
  CHECK(relative(joined.gradients, apart.gradients) < 1e-5);
}

TEST_CASE("a document has the same bits alone and beside others") {
  for (const char* quantize : {"fp8", "fp32"}) {
    const TinyModel model("llama3", quantize);
    TinyRun run;
    if (std::string(quantize) == "fp32") run.recipe.precision = quant::RunPrecision::kFp32;
    const graph::Batch all = random_batch(kLengths, 512);
    const TinyResult together = run_tiny(model, run, all);
    for (const graph::Document& d : all.documents) {
      graph::Batch alone;
      const auto slice = [&](const auto& v) {
        return std::vector<int32_t>(v.begin() + d.row, v.begin() + d.row + d.length);
      };
      alone.ids = slice(all.ids);
      alone.targets = slice(all.targets);
      alone.positions = slice(all.positions);
      alone.documents = {{0, d.length}};
      const TinyResult one = run_tiny(model, run, alone);
      const auto* theirs = together.row_loss.data() + d.row;
      CHECK(std::memcmp(one.row_loss.data(), theirs, one.row_loss.size() * sizeof(float)) == 0);
      const size_t vocab = one.logits.size() / static_cast<size_t>(d.length);
      CHECK(std::memcmp(one.logits.data(),
                        together.logits.data() + static_cast<size_t>(d.row) * vocab,
                        one.logits.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("what stands before a document in its batch does not change a bit of it, in any family") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const TinyModel model(name, "fp8");
    const int64_t vocab = vocab_of(model);
    // rope type dynamic: exact only up to the length that the model was made for (16), and refused
    // with packing.
    const bool dynamic = graph::depends_on_longest_document(model.reader().model().graph);
    const std::vector<int64_t> lengths =
        dynamic ? std::vector<int64_t>{12, 16} : std::vector<int64_t>{33, 47};
    const graph::Batch first = random_batch(lengths, vocab);
    graph::Batch second = random_batch({dynamic ? 7 : 70, lengths[1]}, vocab, 99);
    const graph::Document a = first.documents[1], b = second.documents[1];
    for (int64_t t = 0; t < a.length; ++t) {
      second.ids[static_cast<size_t>(b.row + t)] = first.ids[static_cast<size_t>(a.row + t)];
      second.targets[static_cast<size_t>(b.row + t)] =
          first.targets[static_cast<size_t>(a.row + t)];
    }
    for (bool full : {true, false}) {
      TinyRun run;
      run.full = full;
      const TinyResult one = run_tiny(model, run, first), other = run_tiny(model, run, second);
      const size_t row = static_cast<size_t>(vocab) * sizeof(float);
      CHECK(std::memcmp(one.logits.data() + a.row * vocab, other.logits.data() + b.row * vocab,
                        row * static_cast<size_t>(a.length)) == 0);
      CHECK(std::memcmp(one.row_loss.data() + a.row, other.row_loss.data() + b.row,
                        static_cast<size_t>(a.length) * sizeof(float)) == 0);
      // The documents before are different ones: the test would notice if all logits were the same.
      CHECK(std::memcmp(one.logits.data(), other.logits.data(), row) != 0);
    }
  }
}

TEST_CASE("rope type dynamic: a longer neighbour changes a document's results") {
  const TinyModel model("llama_dynamic", "fp32");
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  const graph::Batch short_ones = random_batch({10, 12}, vocab_of(model));
  graph::Batch long_one = random_batch({10, 40}, vocab_of(model));
  std::copy_n(short_ones.ids.begin(), 10, long_one.ids.begin());
  const TinyResult a = run_tiny(model, run, short_ones), b = run_tiny(model, run, long_one);
  CHECK_FALSE(std::memcmp(a.logits.data(), b.logits.data(), 10 * 64 * sizeof(float)) == 0);
}

TEST_CASE("LoRA with dropout: the gradient is the derivative of the loss") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  run.full = false;
  run.dropout = 0.3;
  const ThirdMask masks;
  const graph::Batch batch = random_batch({30, 9}, 256);
  ThreadPool pool(2);
  auto params = load_tiny(model, run, pool);
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan_for(run)),
                           *params, pool);
  std::vector<float> gradients(static_cast<size_t>(params->trainable_floats())),
      spare(gradients.size());
  auto loss = [&](std::vector<float>& into) {
    graph::RunRequest request;
    request.gradients = into.data();
    request.masks = &masks;
    return executor.run(batch, request).loss_sum;
  };
  loss(gradients);
  for (const graph::Trainable& t : params->trainables()) {
    // Along the gradient itself: the derivative is its length.
    double length = 0;
    for (int64_t i = 0; i < t.size(); ++i)
      length += std::pow(static_cast<double>(gradients[static_cast<size_t>(t.offset + i)]), 2);
    length = std::sqrt(length);
    const double h = 2e-3;
    auto shifted = [&](double by) {
      const std::vector<float> before(params->masters() + t.offset,
                                      params->masters() + t.offset + t.size());
      for (int64_t i = 0; i < t.size(); ++i)
        params->masters()[t.offset + i] +=
            static_cast<float>(by * gradients[static_cast<size_t>(t.offset + i)] / length);
      params->refresh(pool, nullptr);
      const double value = loss(spare);
      std::copy(before.begin(), before.end(), params->masters() + t.offset);
      params->refresh(pool, nullptr);
      return value;
    };
    const double slope = (shifted(h) - shifted(-h)) / (2 * h);
    CAPTURE(t.name);
    CHECK(slope == doctest::Approx(length).epsilon(0.02));
  }
}

TEST_CASE("imported FP8 checkpoints give the logits of their dequantised weights in PyTorch") {
  const formats::SafetensorsFile golden(data_dir() / "formats/fp8/logits.safetensors");
  std::vector<uint8_t> raw(golden.at("input_ids").bytes);
  golden.read_range(golden.at("input_ids"), 0, raw);
  graph::Batch batch;
  for (size_t i = 0; i < raw.size(); i += 4) {
    batch.positions.push_back(static_cast<int32_t>(i / 4));
    batch.ids.push_back((raw[i] | raw[i + 1] << 8) * 2);
    batch.targets.push_back(4);
    ++batch.valid;
  }
  batch.documents.push_back({0, batch.tokens()});
  ThreadPool pool(2);
  for (const char* layout : {"block", "channel", "tensor"}) {
    for (quant::RunPrecision format : {quant::RunPrecision::kFp32, quant::RunPrecision::kBf16}) {
      CAPTURE(layout);
      const TinyModel model("formats/fp8/" + std::string(layout), "fp8");
      TinyRun run;
      run.recipe.precision = format;
      graph::ParameterOptions o;
      o.recipe.precision = format;
      auto params = graph::Parameters::load(model.reader(), o, pool);
      graph::PlanOptions plan = plan_for(run);
      plan.mode = graph::PlanMode::kEval;
      graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan), *params,
                               pool);
      const std::vector<float> want = golden.read_f32(golden.at("logits." + std::string(layout)));
      std::vector<float> got(want.size());
      graph::RunRequest request;
      request.all_logits = got.data();
      executor.run(batch, request);
      double diff = 0, norm = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        diff += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
        norm += double{want[i]} * want[i];
      }
      const double relative = std::sqrt(diff / norm);
      CAPTURE(relative);
      CHECK(relative < (format == quant::RunPrecision::kFp32 ? 5e-6 : 2e-2));
      CHECK(relative > 0);
    }
  }
}

TEST_CASE("rows without a target change nothing") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  graph::Batch batch = random_batch({20}, 256);
  const TinyResult alone = run_tiny(model, run, batch);
  graph::Batch more = random_batch({20, 15}, 256);
  for (size_t t = 20; t < more.targets.size(); ++t) more.targets[t] = -1;
  const TinyResult padded = run_tiny(model, run, more);
  CHECK(alone.stats.loss_sum == padded.stats.loss_sum);
  CHECK(alone.stats.valid == padded.stats.valid);
  CHECK(relative(padded.gradients, alone.gradients) < 1e-6);
  for (int32_t& t : more.targets) t = -1;
  const TinyResult nothing = run_tiny(model, run, more);
  for (float g : nothing.gradients) REQUIRE(g == 0.0f);
}

TEST_CASE("a profile counts every moment once, for the kind of work it went to") {
  const TinyModel model("llama3", "fp8");
  TinyRun run;
  const graph::Batch batch = random_batch(kLengths, 512);
  for (const bool full : {true, false}) {
    run.full = full;
    graph::Profile p;
    const Stopwatch watch;
    run_tiny(model, run, batch, nullptr, &p);
    const double whole = watch.seconds();
    const double parts[] = {p.gemm, p.head_gemm, p.attention,  p.norm,
                            p.loss, p.quantize,  p.elementwise};
    double sum = p.adapter_gemm;
    for (const double part : parts) {
      CHECK(part > 0);
      sum += part;
    }
    CHECK((p.adapter_gemm > 0) == !full);
    CHECK(sum <= whole);
  }
}

TEST_CASE("a document longer than the plan is refused") {
  const TinyModel model("llama2", "fp32");
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  CHECK_THROWS_AS(run_tiny(model, run, random_batch({1025}, 256)), Error);
}

// The operand that a product takes is the same bf16 image, whether four bits and their absmax or
// sixteen bits stand for it; in fp32 the same fp32 value.
TEST_CASE("QLoRA: NF4 weights give the bits of LoRA on the weights that they decode to") {
  for (const char* name : {"llama3", "smollm2", "qwen3_window"}) {
    CAPTURE(name);
    const TinyModel nf4(name, "nf4");
    const graph::Batch batch = random_batch(kLengths, vocab_of(nf4));
    for (auto format : {quant::RunPrecision::kBf16, quant::RunPrecision::kFp32}) {
      const TinyModel decoded(nf4, format == quant::RunPrecision::kFp32 ? "fp32" : "bf16");
      TinyRun run;
      run.full = false;
      run.dropout = 0.3;
      run.recipe.precision = format;
      const ThirdMask masks;
      for (bool checkpointing : {false, true}) {
        run.plan.gradient_checkpointing = checkpointing;
        const TinyResult coded = run_tiny(nf4, run, batch, &masks),
                         plain = run_tiny(decoded, run, batch, &masks);
        CHECK(coded.stats.loss_sum == plain.stats.loss_sum);
        CHECK(same_bits(coded.gradients, plain.gradients));
        CHECK(same_bits(coded.logits, plain.logits));
      }
    }
  }
}

TEST_CASE(
    "QLoRA: the same bits on every ISA and for every number of threads, with FP8 activations") {
  const kernels::Isa before = kernels::active_isa();
  const TinyModel model("smollm2", "nf4");
  const graph::Batch batch = random_batch(kLengths, vocab_of(model));
  TinyRun run;
  run.full = false;
  kernels::set_active_isa(kernels::Isa::kScalar);
  const TinyResult scalar = run_tiny(model, run, batch);
  for (kernels::Isa isa : kernels::testable_isas()) {
    REQUIRE(kernels::set_active_isa(isa));
    CAPTURE(kernels::isa_name(isa));
    for (int threads : {1, 3}) {
      run.threads = threads;
      const TinyResult vector = run_tiny(model, run, batch);
      CHECK(scalar.stats.loss_sum == vector.stats.loss_sum);
      CHECK(same_bits(scalar.gradients, vector.gradients));
      CHECK(same_bits(scalar.logits, vector.logits));
    }
  }
  kernels::set_active_isa(before);
}
