// Our own elementary functions in double, the same bits on every machine (libm's differ). Only +,
// -, *, /, sqrt, floor and ldexp are used; the file is compiled with -ffp-contract=off. Relative
// error under 1e-14 (sin, cos: absolute).
#pragma once

#include "base/api.h"

namespace loongforge::kernels {

LF_API double det_exp(double x) noexcept;
LF_API double det_log(double x) noexcept;            // x > 0
LF_API double det_pow(double x, double y) noexcept;  // x > 0
LF_API double det_sin(double x) noexcept;            // |x| < 2^30
LF_API double det_cos(double x) noexcept;

}  // namespace loongforge::kernels
