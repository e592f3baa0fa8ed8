// An activation or its gradient made FP8: which scale, the codes, what was counted.
// Thread-safety: the caller's thread only.
#pragma once

#include <string>

#include "graph/op.h"
#include "quant/recipe.h"

namespace loongforge::graph {

struct RoundedTensor {
  std::string name;  // "<layer>.input" or "<layer>.grad"
  kernels::Elem fp8 = kernels::Elem::kE4M3;
  quant::ScaleRecipe scales = quant::ScaleRecipe::kBlock;
  float factor = 1.0f;  // of amax
  bool gradient = false;
  int64_t cols = 0;
  int64_t exps_ld() const { return (cols + kernels::kFeatureBlock - 1) / kernels::kFeatureBlock; }
};

// Codes of the batch's rows of x. codes: [tokens, cols], exps: [tokens, exps_ld()]. image, where
// its data is not null: their values as operands. count: these values are rounded for the first
// time (a backward or a recomputation rounds them again, to the same codes); false leaves
// statistics and history alone.
kernels::Mat round_to_fp8(RunContext& c, const RoundedTensor& t, const kernels::Mat& x,
                          uint8_t* codes, int8_t* exps, const kernels::MatOut& image, bool count);

}  // namespace loongforge::graph
