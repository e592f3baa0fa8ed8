// FP8 weights that an import keeps as the checkpoint has them, and an export gives back: codes byte
// for byte, scales in their own type times 32 (a code of OCP's E4M3 is 32 times E4M3-LA's), the
// tensors beside them as they are. Thread-safety: functions without shared state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convert/stripes.h"
#include "formats/quantized_source.h"
#include "ir/reader.h"
#include "ir/writer.h"

namespace loongforge::convert {

// What LoongIR's table says of it. REQUIRES scheme kFp8.
ir::TensorEntry kept_entry(const formats::QuantizedTensor& tensor, const std::string& name);
std::vector<ir::TensorEntry> carried_entries(const formats::QuantizedTensor& tensor);

// Its scales times 32: kBadData Error where that is not exact.
std::vector<uint8_t> kept_scales(const formats::TensorSource& stored,
                                 const formats::QuantizedTensor& tensor);
// Rows of codes, as bytes.
RowSource kept_rows(const formats::TensorSource& stored, const formats::QuantizedTensor& tensor);
std::vector<uint8_t> stored_bytes(const formats::TensorSource& stored,
                                  const formats::StoredTensor& tensor);

// The other way: dense bytes of a companion as the checkpoint had it.
std::vector<uint8_t> source_scales(const ir::Reader& reader, const ir::TensorEntry& tensor);
std::vector<uint8_t> dense_bytes(const ir::Reader& reader, const ir::TensorEntry& tensor);

// Whether the model came from an FP8 checkpoint and was kept.
bool holds_kept_fp8(const ir::Model& model);

}  // namespace loongforge::convert
