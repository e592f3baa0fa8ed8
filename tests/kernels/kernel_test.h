// What the kernel tests share: matrices that notice stray writes, and running one computation on
// every ISA.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "kernels/types.h"

namespace loongforge::kernels::test {

using Bytes = std::vector<uint8_t>;

inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}
inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
inline float bf16_value(Bf16 x) { return float_of(static_cast<uint32_t>(x.bits) << 16); }
inline float bf16_round(float x) { return bf16_value({round_operand(bits_of(x))}); }

inline std::string isa_label(Isa isa) {
  return std::string(isa_name(isa)) + (isa_is_emulated(isa) ? " (emulated)" : " (native)");
}

// Makes isa the active one for a scope.
class UseIsa {
 public:
  explicit UseIsa(Isa isa) : before_(active_isa()) { REQUIRE(set_active_isa(isa)); }
  ~UseIsa() { set_active_isa(before_); }
  UseIsa(const UseIsa&) = delete;
  UseIsa& operator=(const UseIsa&) = delete;

 private:
  Isa before_;
};

// compute() returns the bytes of its results; they must be the same on every ISA.
template <class F>
void check_same_on_every_isa(F compute) {
  Bytes expected;
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    const Bytes got = compute();
    if (isa == Isa::kScalar) {
      expected = got;
      continue;
    }
    REQUIRE(got.size() == expected.size());
    size_t differing = 0;
    for (size_t i = 0; i < got.size(); ++i) differing += got[i] != expected[i];
    INFO("isa: ", isa_label(isa));
    CHECK(differing == 0);
  }
}

template <class T>
void append(Bytes* out, const std::vector<T>& x) {
  const auto* p = reinterpret_cast<const uint8_t*>(x.data());
  out->insert(out->end(), p, p + x.size() * sizeof(T));
}
template <class T>
void append_value(Bytes* out, T x) {
  const auto* p = reinterpret_cast<const uint8_t*>(&x);
  out->insert(out->end(), p, p + sizeof x);
}
// fp32 results that may be NaN: NaN equals NaN, so its bits are made the same.
inline void append_floats(Bytes* out, const std::vector<float>& x) {
  for (const float v : x) append_value(out, v != v ? 0x7FC00000u : bits_of(v));
}

// rows x cols elements with a stride and a start that is aligned to its element only, in memory
// that is otherwise filled with a pattern.
class TestMatrix {
 public:
  TestMatrix(int64_t rows, int64_t cols, Elem elem, int64_t ld = 0, int shift = 1)
      : rows_(rows), cols_(cols), ld_(ld == 0 ? cols : ld), elem_(elem) {
    const int64_t bytes = elem_bytes(elem);
    start_ = shift * bytes + 64;
    storage_.assign(static_cast<size_t>(start_ + rows_ * ld_ * bytes + 64), kPattern);
  }

  void fill(std::mt19937* random, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < cols_; ++j) set(i, j, normal(*random));
  }
  void set(int64_t i, int64_t j, float x) {
    if (elem_ == Elem::kF32) {
      std::memcpy(at(i, j), &x, 4);
    } else {
      const uint16_t b = round_operand(bits_of(x));
      std::memcpy(at(i, j), &b, 2);
    }
  }
  float get(int64_t i, int64_t j) const {
    if (elem_ == Elem::kF32) {
      float x;
      std::memcpy(&x, at(i, j), 4);
      return x;
    }
    Bf16 b;
    std::memcpy(&b, at(i, j), 2);
    return bf16_value(b);
  }

  Mat in() const { return {at(0, 0), ld_, elem_}; }
  MatOut out() { return {at(0, 0), ld_, elem_}; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  Elem elem() const { return elem_; }
  const Bytes& bytes() const { return storage_; }

  // Nothing but the elements was written.
  bool surroundings_intact() const {
    Bytes mask(storage_.size(), 0);
    for (int64_t i = 0; i < rows_; ++i) {
      const size_t first = static_cast<size_t>(at(i, 0) - storage_.data());
      for (size_t k = 0; k < static_cast<size_t>(cols_ * elem_bytes(elem_)); ++k)
        mask[first + k] = 1;
    }
    for (size_t k = 0; k < storage_.size(); ++k)
      if (mask[k] == 0 && storage_[k] != kPattern) return false;
    return true;
  }

 private:
  static constexpr uint8_t kPattern = 0xA5;
  const uint8_t* at(int64_t i, int64_t j) const {
    return storage_.data() + start_ + (i * ld_ + j) * elem_bytes(elem_);
  }
  uint8_t* at(int64_t i, int64_t j) {
    return storage_.data() + start_ + (i * ld_ + j) * elem_bytes(elem_);
  }

  int64_t rows_, cols_, ld_;
  Elem elem_;
  int64_t start_;
  Bytes storage_;
};

// |got - want| within `units` steps of an fp32 (or bf16) result of magnitude `size`.
inline bool close(double got, double want, Elem elem, double size, double units = 4) {
  const double step = elem == Elem::kBf16 ? 0x1p-8 : 0x1p-24;
  const double rounding = elem == Elem::kBf16 ? std::fabs(want) * step * 1.01 : 0.0;
  return std::fabs(got - want) <= rounding + units * size * 0x1p-24 + 0x1p-54;
}

inline const std::vector<Elem>& float_elems() {
  static const std::vector<Elem> elems = {Elem::kF32, Elem::kBf16};
  return elems;
}

}  // namespace loongforge::kernels::test
