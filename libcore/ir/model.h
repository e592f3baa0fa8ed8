// The contents of loongir_model.json: what a LoongIR folder says of a model (man/loongir.5).
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "support/json.h"
#include "tensor/dtype.h"

namespace loongforge::ir {

// One module-sized operation. Nodes stand in topological order.
//
// op            inputs          params                attrs
// embedding     [token_ids]     weight                -
// rms_norm      [x]             weight                eps; group (head_dim for per-head norms;
// absent: the whole row) linear        [x]             weight, bias?         in, out rope [x] -
// heads, head_dim, theta, rotary_dim, scaling {rope_type, ...} attention     [q, k, v]       -
// heads, kv_heads, head_dim, scale, window (0: none) swiglu        [gate, up]      - - add [a, b]
// -                     - Inputs name nodes; "token_ids" names the model's input. The last node's
// output are the logits.
struct LF_API Node {
  std::string name;  // unique, e.g. "layers.3.self_attn.q_proj"
  std::string op;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> params;  // role -> tensor name
  support::Json attrs = support::Json::object();
  std::string shard;  // "fsdp_shard", "ddp_replicate", "io_shard"
  int block = -1;     // index of the transformer block it belongs to, -1: none
};

struct LF_API Graph {
  std::vector<Node> nodes;
};

// What the scale of an imported FP8 weight was in its checkpoint (its type is the companion's, its
// values those / 32).
struct LF_API SourceScale {
  std::string name;  // empty: none
  std::vector<int64_t> shape;
};

struct LF_API TensorEntry {
  std::string name;
  tensor::DType dtype{};
  std::vector<int64_t> shape;
  std::string file;                        // inside the folder
  uint64_t offset = 0;                     // of the first row; a multiple of 128
  uint64_t bytes = 0;                      // stored bytes: rows() * row_stride()
  int64_t block_rows = 0, block_cols = 0;  // FP8: the scale block; NF4: 1 and 64; else 0
  // FP8: name of the companion tensor [ceil(rows/r), ceil(cols/c)]; NF4: of that with its absmax.
  std::string scale;
  // FP8: of that companion, F32, BF16 or F16. Known to who writes; a reader looks at the companion.
  tensor::DType scale_dtype = tensor::DType::kF32;
  SourceScale source_scale;
  // FP8: tensors that stood beside the weight in its checkpoint, stored as they are under their own
  // names; nothing is computed with them.
  std::vector<std::string> companions;
  std::string crc;  // name of the companion U32 tensor: one CRC32C per 128 rows, padding included
  uint32_t crc32c = 0;           // companions: the checksum of their bytes
  std::string alias_of;          // stored as that tensor (file, offset, bytes are empty here)
  bool source_had_both = false;  // of an alias: the source file held the tensor as well

  int64_t rows() const;  // first dimension; 1 for rank 0 and rank 1
  int64_t cols() const;  // elements of a row
  uint64_t row_bytes() const;
  uint64_t row_stride() const;  // row_bytes rounded up to 32
};

struct LF_API Model {
  int version_major = 1, version_minor = 1;
  std::string family;      // name in the models/ registry, e.g. "llama"
  std::string model_name;  // the user's label
  std::string device;      // "x86_64" or "loongarch64"
  std::string quantize;    // "nf4", "fp8", "bf16", "fp32": how the linear weights were stored
  support::Json config;    // the source's config.json, HF ids
  support::Json token_ids =
      support::Json::object();  // id_scale 2, vocab_size, bos, eos (list), pad, in LoongIR ids
  Graph graph;
  std::vector<TensorEntry> tensors;  // in file order

  const TensorEntry* find_tensor(std::string_view name) const;  // null when absent
  const TensorEntry& stored_tensor(
      std::string_view name) const;  // follows alias_of; kBadData Error when absent
  // Names of the tensors that belong to others: scales, checksums, what an FP8 weight brought
  // along. Views into the table.
  std::set<std::string_view> companion_names() const;
};

}  // namespace loongforge::ir
