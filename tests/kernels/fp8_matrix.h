// Random FP8 matrices whose values the tests compute by themselves, in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/aligned.h"
#include "kernels/gemm.h"

namespace loongforge::kernels::test {

// From the definitions of the formats (DESIGN 3), for finite codes.
inline double fp8_value(Elem fp8, uint8_t code) {
  const int mantissa_bits = fp8 == Elem::kE4M3 ? 3 : 2, bias = fp8 == Elem::kE4M3 ? 12 : 15;
  const int e = (code & 0x7F) >> mantissa_bits, m = code & ((1 << mantissa_bits) - 1);
  const double unit = std::ldexp(1.0, -mantissa_bits);
  const double x = e == 0 ? std::ldexp(m * unit, 1 - bias) : std::ldexp(1 + m * unit, e - bias);
  return (code & 0x80) != 0 ? -x : x;
}

// Finite codes with exponents per row and 128 columns (block_rows 1) or per 128 x 128 (block_rows
// 128). Values are of the magnitude of 1, whatever the format.
struct Fp8Matrix {
  int64_t rows, cols, ld, block_rows, ld_exps;
  Elem elem;
  std::vector<uint8_t> codes;
  std::vector<int8_t> exps;

  Fp8Matrix(int64_t rows_, int64_t cols_, Elem elem_, int64_t block_rows_, std::mt19937* random)
      : rows(rows_),
        cols(cols_),
        ld(cols_ + 3),
        block_rows(block_rows_),
        ld_exps((cols_ + 127) / 128),
        elem(elem_) {
    const int first = elem == Elem::kE4M3 ? 0x58 : 0x38;  // codes of about 0.5 to 4
    const int count = elem == Elem::kE4M3 ? 0x18 : 0x0C;
    for (int64_t i = 0; i < rows * ld; ++i) {
      const auto r = static_cast<uint32_t>((*random)());
      // One of 16 is anything finite, zeros and subnormals among them.
      const int any = static_cast<int>(r >> 8) % (elem == Elem::kE4M3 ? 0x7F : 0x7C);
      const int code = r % 16 == 0 ? any : first + static_cast<int>(r >> 8) % count;
      codes.push_back(static_cast<uint8_t>(code | (r >> 31) << 7));
    }
    for (int64_t i = 0; i < (rows + block_rows - 1) / block_rows * ld_exps; ++i)
      exps.push_back(static_cast<int8_t>(static_cast<int>((*random)() % 6) - 4));
  }
  double get(int64_t i, int64_t j) const {
    const double x = fp8_value(elem, codes[static_cast<size_t>(i * ld + j)]);
    return std::ldexp(x, exps[static_cast<size_t>(i / block_rows * ld_exps + j / 128)]);
  }
  Mat view() const { return {codes.data(), ld, elem, exps.data(), ld_exps}; }
};

// The weight as the active ISA packs it. The matrix outlives it. REQUIRES block_rows 128.
struct PackedFp8 {
  AlignedBuffer buffer;
  PackedWeight w;
  explicit PackedFp8(const Fp8Matrix& m) : buffer(packed_weight_bytes(m.elem, m.rows, m.cols)) {
    w = {buffer.data(), const_cast<int8_t*>(m.exps.data()), m.rows, m.cols, m.elem};
    pack_weight_rows(w, m.codes.data(), m.ld, 0, m.rows);
  }
};

}  // namespace loongforge::kernels::test
