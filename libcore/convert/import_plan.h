// What an import is going to do, worked out and checked before anything is written: the source, its
// configuration, family and graph, the tokenizer, and for each tensor the type it is stored in.
// Thread-safety: one thread; the plan is read-only once made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/import.h"
#include "convert/stripes.h"
#include "data/tokenizer.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/quantized_source.h"
#include "formats/tensor_source.h"
#include "ir/model.h"
#include "models/registry.h"
#include "quant/loongamp.h"

namespace loongforge::convert {

struct ImportPlan {
  std::unique_ptr<formats::TensorSource> source;
  const formats::QuantizedSource* quantized = nullptr;  // source, where the checkpoint is quantised
  bool gguf = false;
  formats::HfConfig config;
  const models::Family* family = nullptr;
  models::ModelPlan model;
  std::vector<quant::Decision> decisions;  // per model.tensors
  // Per model.tensors: the weight of an FP8 or NF4 checkpoint that is stored as it is; null else.
  std::vector<const formats::QuantizedTensor*> kept;
  std::vector<ir::TensorEntry> entries;  // per model.tensors: name, dtype, shape, scale block
  std::vector<data::TokenizerFile> tokenizer_files;
  std::optional<std::string>
      generation_config;    // generation_config.json: the source's, or made (GGUF)
  support::Json token_ids;  // the block of loongir_model.json
  uint64_t page = 0;        // of the device
  uint64_t stored_bytes = 0;
  ImportReport report;  // all but what writing finds
};

ImportPlan make_import_plan(const ImportOptions& options);

// Rows of a planned tensor in Hugging Face's order. The plan outlives it.
RowSource rows_of(const formats::TensorSource& source, const models::PlannedTensor& tensor);

// The machine's own device name.
std::string native_device();

}  // namespace loongforge::convert
