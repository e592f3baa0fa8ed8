// Export: a LoongIR folder (or a checkpoint of full fine-tuning, which holds one) becomes a Hugging
// Face folder or a GGUF file; an adapter becomes a PEFT folder, or is merged into the weights.
//
// Streams like the import. Every weight is rounded once: FP8 codes are decoded exactly, merges are
// computed in fp32. What is made appears under its final name complete or not at all.
// Thread-safety: as import.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "convert/import.h"

namespace loongforge::convert {

struct ExportOptions {
  std::string format = "hf";         // "hf", "gguf", "peft"
  std::filesystem::path input_path;  // a LoongIR folder or a checkpoint that holds one; peft: may
                                     // be the adapter itself
  std::filesystem::path output_path;
  std::filesystem::path adapter;  // a PEFT folder or a checkpoint that holds one; empty: none
  bool merge = false;             // hf, gguf: adds the adapter to the weights; needs adapter
  std::string dtype;  // hf: "bf16", "fp8", "fp32"; gguf: "bf16", "fp16", "fp32", "q8_0"; empty:
                      // bf16, or hf as it came in where an FP8 checkpoint was imported
  uint64_t max_shard_bytes = 5'000'000'000;
  bool overwrite = false;
  bool dry_run = false;  // plan, check and report; write nothing
  int threads = 1;
};

struct ExportReport {
  std::string format, dtype, family;
  int64_t tensors = 0;
  uint64_t bytes = 0;  // tensor bytes of the weight files
  int64_t weight_files = 0;
  int64_t merged = 0;            // linears that took a LoRA pair
  std::vector<KeptTensor> kept;  // fp8, q8_0: matrices that stay in higher precision
  std::vector<std::string> warnings;
  std::vector<std::string> files;  // names inside output_path; empty after a dry run
};

LF_API ExportReport export_model(const ExportOptions& options,
                                 const ProgressCallback& progress = {});

// "5GB", "500MB", "2GiB", "1000000": powers of ten without the i, as in Hugging Face. Throws
// Error(kUsage) naming `flag`.
LF_API uint64_t parse_byte_size(std::string_view text, std::string_view flag);

}  // namespace loongforge::convert
