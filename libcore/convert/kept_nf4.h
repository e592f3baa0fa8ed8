// NF4 weights of bitsandbytes that an import keeps: codes byte for byte, absmax in FP32. Possible
// where each row begins a block, which LoongIR's rows do. Thread-safety: functions without shared
// state.
#pragma once

#include <vector>

#include "convert/stripes.h"
#include "formats/quantized_source.h"

namespace loongforge::convert {

// Whether LoongIR can say the same: no block crosses rows, and each is made of LoongIR's. REQUIRES
// scheme kNf4, here and below.
bool nf4_can_be_kept(const formats::QuantizedTensor& tensor);

// REQUIRES nf4_can_be_kept(tensor), here and below. Rows of codes.
RowSource nf4_rows(const formats::TensorSource& stored, const formats::QuantizedTensor& tensor);
// One for each 64 columns of each row: kBadData Error where one is not finite.
std::vector<float> nf4_absmax(const formats::TensorSource& stored,
                              const formats::QuantizedTensor& tensor);

}  // namespace loongforge::convert
