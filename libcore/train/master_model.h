// A fully fine-tuned model's FP32 masters as a LoongIR folder: what a checkpoint holds, and what
// export reads. Thread-safety: one thread.
#pragma once

#include <filesystem>

#include "graph/parameters.h"
#include "ir/reader.h"

namespace loongforge::train {

// Writes the files of a LoongIR folder into `folder`, which exists and is built under a temporary
// name by the caller: graph, config and tokenizer files of `source`, every trained tensor as F32
// from its master, the others as they are.
void write_master_model(const std::filesystem::path& folder, const ir::Reader& source,
                        const graph::Parameters& params);

// Of the files that go along: tokenizer and configuration.
uint64_t bytes_beside_weights(const std::filesystem::path& model);

}  // namespace loongforge::train
