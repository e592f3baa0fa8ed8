#include "kernels/dispatch.h"
#include "kernels/generic/tables.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(RowsTable, kRowsTable)

void rms_norm_forward(Mat x, const float* weight, float eps, int64_t cols, MatOut y, float* rstd,
                      int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).norm_forward(x, weight, eps, cols, y, rstd, r0, r1);
}

void rms_norm_backward(Mat dy, Mat x, const float* weight, const float* rstd, int64_t cols,
                       Mat d_residual, MatOut dx, float* d_weight_blocks, int64_t r0,
                       int64_t r1) noexcept {
  LF_TABLE(kRowsTable)
      .norm_backward(dy, x, weight, rstd, cols, d_residual, dx, d_weight_blocks, r0, r1);
}

void sum_blocks(const float* blocks, int64_t n_blocks, int64_t cols, float* out, bool accumulate,
                int64_t c0, int64_t c1) noexcept {
  LF_TABLE(kRowsTable).sum(blocks, n_blocks, cols, out, accumulate, c0, c1);
}

void swiglu_forward(Mat gate, Mat up, int64_t cols, MatOut out, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).gate_forward(gate, up, cols, out, r0, r1);
}

void swiglu_backward(Mat d_out, Mat gate, Mat up, int64_t cols, MatOut d_gate, MatOut d_up,
                     int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).gate_backward(d_out, gate, up, cols, d_gate, d_up, r0, r1);
}

void rope(Mat x, MatOut y, int64_t heads, int64_t head_dim, const int32_t* positions,
          const float* cos, const float* sin, bool inverse, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).rotate(x, y, heads, head_dim, positions, cos, sin, inverse, r0, r1);
}

void add(Mat a, Mat b, int64_t cols, MatOut y, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).sum_two(a, b, cols, y, r0, r1);
}

void apply_mask(Mat x, const uint8_t* mask, int64_t mask_ld, float scale, int64_t cols, MatOut out,
                int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kRowsTable).mask(x, mask, mask_ld, scale, cols, out, r0, r1);
}

extern const Family kRowsFamily = {"rows", LF_TABLE_FOR(kRowsTable), {}};

}  // namespace loongforge::kernels
