// A small LoongIR model for tests: embedding, norm, a tied head; every kind of tensor the format
// has. Values are computed from the index, so that a test can say what must be where.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/writer.h"

namespace loongforge::test {

inline constexpr int64_t kTinyRows = 300, kTinyCols = 40,
                         kTinyOut = 200;  // cols: rows need padding in every dtype but F32

inline uint16_t tiny_bf16(int64_t row, int64_t col) {
  return static_cast<uint16_t>(0x3F80 + (row * 7 + col) % 64);
}
inline uint8_t tiny_code(int64_t row, int64_t col) {
  return static_cast<uint8_t>((row * 13 + col * 5) % 127);
}
inline float tiny_scale(int64_t block) { return block == 0 ? 0.25f : 2.0f; }
inline float tiny_norm(int64_t col) { return 1.0f + static_cast<float>(col) / 64.0f; }

inline ir::Model tiny_description() {
  using support::Json;
  ir::Model model;
  model.family = "llama";
  model.model_name = "tiny";
  model.device = "x86_64";
  model.quantize = "fp8";
  model.config = Json::parse(R"({"model_type": "llama", "rms_norm_eps": 1e-05})", "test");
  model.token_ids = Json::parse(R"({"id_scale": 2, "vocab_size": 300, "eos": [4]})", "test");
  const auto node = [&model](const char* name, const char* op, std::vector<std::string> inputs,
                             const char* weight, const char* attrs, int block) {
    ir::Node& added = model.graph.nodes.emplace_back();
    added.name = name;
    added.op = op;
    added.inputs = std::move(inputs);
    if (*weight != '\0') added.params["weight"] = weight;
    added.attrs = Json::parse(attrs, "test");
    added.shard = "ddp_replicate";
    added.block = block;
  };
  node("embed_tokens", "embedding", {"token_ids"}, "embed.weight", "{}", -1);
  node("norm", "rms_norm", {"embed_tokens"}, "norm.weight", R"({"eps": 1e-05})", 0);
  node("proj", "linear", {"norm"}, "proj.weight", R"({"in": 40, "out": 200})", 0);
  node("lm_head", "linear", {"norm"}, "head.weight", R"({"in": 40, "out": 300})", -1);
  return model;
}

inline ir::TensorEntry tiny_entry(const char* name, tensor::DType dtype, std::vector<int64_t> shape,
                                  int64_t block = 0) {
  ir::TensorEntry entry;
  entry.name = name;
  entry.dtype = dtype;
  entry.shape = std::move(shape);
  entry.block_rows = entry.block_cols = block;
  return entry;
}

inline void write_tiny_model(const std::filesystem::path& folder, uint64_t page = 4096,
                             uint64_t max_file_bytes = 5'000'000'000,
                             const char* device = "x86_64") {
  ir::Writer writer(folder, false, page, max_file_bytes);
  std::vector<uint16_t> embed;
  for (int64_t r = 0; r < kTinyRows; ++r) {
    for (int64_t c = 0; c < kTinyCols; ++c) embed.push_back(tiny_bf16(r, c));
  }
  writer.begin_tensor(tiny_entry("embed.weight", tensor::DType::kBF16, {kTinyRows, kTinyCols}));
  // In pieces that do not end where checksums do.
  for (int64_t r = 0; r < kTinyRows; r += 77) {
    writer.write_rows(embed.data() + r * kTinyCols, std::min<int64_t>(77, kTinyRows - r));
  }
  writer.finish_tensor();
  std::vector<float> norm;
  for (int64_t c = 0; c < kTinyCols; ++c) norm.push_back(tiny_norm(c));
  writer.begin_tensor(tiny_entry("norm.weight", tensor::DType::kF32, {kTinyCols}));
  writer.write_rows(norm.data(), 1);
  writer.finish_tensor();
  std::vector<uint8_t> codes;
  for (int64_t r = 0; r < kTinyOut; ++r) {
    for (int64_t c = 0; c < kTinyCols; ++c) codes.push_back(tiny_code(r, c));
  }
  writer.begin_tensor(
      tiny_entry("proj.weight", tensor::DType::kE4M3LA, {kTinyOut, kTinyCols}, 128));
  writer.write_rows(codes.data(), kTinyOut);
  const float scales[] = {tiny_scale(0), tiny_scale(1)};
  writer.set_scales(scales);
  writer.finish_tensor();
  writer.add_alias("head.weight", "embed.weight", true);
  writer.add_file_text("generation_config.json", "{}\n");
  ir::Model model = tiny_description();
  model.device = device;
  writer.finish(std::move(model));
}

}  // namespace loongforge::test
