// The function tables that each ISA fills, one per family; the functions are those of quant.h,
// rows.h, optim.h and reduce.h.
#pragma once

#include "kernels/optim.h"
#include "kernels/quant.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"

namespace loongforge::kernels {

struct QuantTable {
  decltype(&fp8_encode) encode;
  decltype(&fp8_decode) decode;
  decltype(&quantize_rows) rows;
  decltype(&quantize_weight) weight;
  decltype(&quantize_rows_at) rows_at;
  decltype(&amax_rows) amax;
  decltype(&dequantize_rows) dequantize;
  decltype(&quant_error) error;
  decltype(&quantize_nf4) nf4;
  decltype(&cast) cast_elems;
  decltype(&cast_f16_to_f32) f16_to_f32;
};

struct RowsTable {
  decltype(&rms_norm_forward) norm_forward;
  decltype(&rms_norm_backward) norm_backward;
  decltype(&sum_blocks) sum;
  decltype(&swiglu_forward) gate_forward;
  decltype(&swiglu_backward) gate_backward;
  decltype(&rope) rotate;
  decltype(&add) sum_two;
  decltype(&apply_mask) mask;
};

struct LossTable {
  decltype(&softmax_xent) xent;
  decltype(&argmax) largest;
};

struct OptimTable {
  decltype(&adamw) step;
  decltype(&adamw_narrow) narrow_step;
  decltype(&read_moments) read;
  decltype(&write_moments) write;
  decltype(&accumulate) add_to;
  decltype(&scale) times;
  decltype(&sum_squares) squares;
  decltype(&sum) total;
  decltype(&all_finite) finite;
};

struct ReduceTable {
  decltype(&reduce_into) into;
  decltype(&reduce_two) two;
  decltype(&find_non_finite) scan;
  decltype(&pack_fp8) pack;
  decltype(&unpack_fp8) unpack;
};

}  // namespace loongforge::kernels
