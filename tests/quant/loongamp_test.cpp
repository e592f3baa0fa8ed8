#include "quant/loongamp.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"

using namespace loongforge;
using quant::AmpPolicy;
using quant::Storage;
using quant::TensorRole;
using tensor::DType;

namespace {

quant::Decision decide(const AmpPolicy& policy, TensorRole role, int64_t elements,
                       DType source = DType::kBF16, int64_t rank = 2, bool tied = false) {
  return policy.decide(
      {"model.layers.0.self_attn.q_proj.weight", role, elements, rank, tied, source});
}

}  // namespace

TEST_CASE("fp8 moves linear weights and nothing else") {
  const AmpPolicy policy = AmpPolicy::standard("fp8", false);
  CHECK(decide(policy, TensorRole::kLinear, 4096).dtype == DType::kE4M3LA);
  const quant::Decision small = decide(policy, TensorRole::kLinear, 4095);
  CHECK(small.dtype == DType::kBF16);
  CHECK(small.reason.find("4096") != std::string::npos);
  const quant::Decision head = decide(policy, TensorRole::kHead, 1 << 20);
  CHECK(head.dtype == DType::kBF16);
  CHECK(head.reason.find("--quantize_head") != std::string::npos);
  CHECK(decide(policy, TensorRole::kEmbedding, 1 << 20).dtype == DType::kBF16);
  CHECK(decide(policy, TensorRole::kEmbedding, 1 << 20, DType::kF32).dtype == DType::kBF16);
  CHECK(decide(policy, TensorRole::kNorm, 1 << 20, DType::kF32, 1).dtype == DType::kF32);
  CHECK(decide(policy, TensorRole::kNorm, 64, DType::kF16, 1).dtype == DType::kBF16);
  CHECK(decide(policy, TensorRole::kBias, 1 << 20, DType::kBF16, 1).dtype == DType::kBF16);
}

TEST_CASE("--quantize_head moves the head, unless it is the embedding") {
  const AmpPolicy policy = AmpPolicy::standard("fp8", true);
  CHECK(decide(policy, TensorRole::kHead, 1 << 20).dtype == DType::kE4M3LA);
  CHECK(decide(policy, TensorRole::kHead, 100).dtype == DType::kBF16);
  const quant::Decision tied =
      decide(policy, TensorRole::kEmbedding, 1 << 20, DType::kBF16, 2, true);
  CHECK(tied.dtype == DType::kBF16);
  CHECK(tied.reason.find("--quantize_head") != std::string::npos);
}

TEST_CASE("bf16 rounds matrices, fp32 rounds nothing") {
  const AmpPolicy bf16 = AmpPolicy::standard("bf16", false);
  CHECK(decide(bf16, TensorRole::kLinear, 1 << 20, DType::kF32).dtype == DType::kBF16);
  CHECK(decide(bf16, TensorRole::kHead, 1 << 20, DType::kF16).dtype == DType::kBF16);
  CHECK(decide(bf16, TensorRole::kNorm, 64, DType::kF32, 1).dtype == DType::kF32);
  const AmpPolicy fp32 = AmpPolicy::standard("fp32", false);
  CHECK(decide(fp32, TensorRole::kLinear, 1 << 20).dtype == DType::kF32);
  CHECK(decide(fp32, TensorRole::kEmbedding, 1 << 20, DType::kF16).dtype == DType::kF32);
  CHECK(decide(fp32, TensorRole::kNorm, 64, DType::kF16, 1).dtype == DType::kF32);
  CHECK(decide(fp32, TensorRole::kNorm, 64, DType::kBF16, 1).dtype == DType::kBF16);
  LF_CHECK_ERROR(AmpPolicy::standard("int4", false), ErrorCode::kUsage, "int4");
}

TEST_CASE("an override by layer stands before the rules") {
  AmpPolicy policy = AmpPolicy::standard("fp8", false);
  quant::AmpRule rule;
  rule.pattern = "model.layers.0.*";
  rule.storage = Storage::kBf16;
  rule.reason = "asked for";
  policy.prepend(rule);
  CHECK(decide(policy, TensorRole::kLinear, 1 << 20).reason == "asked for");
  CHECK(policy
            .decide({"model.layers.10.mlp.up_proj.weight", TensorRole::kLinear, 1 << 20, 2, false,
                     DType::kBF16})
            .dtype == DType::kE4M3LA);
  CHECK(policy.describe().find("any model.layers.0.* -> bf16: asked for") != std::string::npos);
}

TEST_CASE("a vector has no blocks, so an override cannot make it fp8") {
  AmpPolicy policy = AmpPolicy::standard("fp8", false);
  quant::AmpRule rule;
  rule.storage = Storage::kFp8;
  policy.prepend(rule);
  CHECK(decide(policy, TensorRole::kNorm, 64, DType::kF32, 1).dtype == DType::kF32);
  CHECK(decide(policy, TensorRole::kLinear, 64).dtype == DType::kE4M3LA);
}

TEST_CASE("spellings") {
  CHECK(quant::parse_storage("fp8") == Storage::kFp8);
  CHECK(quant::parse_storage("source") == Storage::kSource);
  CHECK_FALSE(quant::parse_storage("FP8"));
  CHECK(quant::role_name(TensorRole::kHead) == "head");
}
