#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/generic/tables.h"
#include "kernels/op_list.h"
#include "kernels/reduce.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(ReduceTable, kReduceTable)

void reduce_into(float* sum, const void* x, Elem elem, int64_t n) noexcept {
  LF_TABLE(kReduceTable).into(sum, x, elem, n);
}

void reduce_two(const void* a, Elem a_elem, const void* b, Elem b_elem, void* out, Elem out_elem,
                int64_t n) noexcept {
  LF_TABLE(kReduceTable).two(a, a_elem, b, b_elem, out, out_elem, n);
}

NonFinite find_non_finite(const void* x, Elem elem, int64_t n) noexcept {
  return LF_TABLE(kReduceTable).scan(x, elem, n);
}

void pack_fp8(Elem fp8, const void* x, Elem elem, int64_t n, float amax_factor, uint64_t* words,
              int8_t* exps, QuantCounts* counts) noexcept {
  LF_TABLE(kReduceTable).pack(fp8, x, elem, n, amax_factor, words, exps, counts);
}

void unpack_fp8(Elem fp8, const uint64_t* words, const int8_t* exps, int64_t n, float* x,
                bool accumulate) noexcept {
  LF_TABLE(kReduceTable).unpack(fp8, words, exps, n, x, accumulate);
}

// The words' order is the memory's (generic/reduce.h): a copy, on every ISA.
void pack_codes(const uint8_t* codes, int64_t n, uint64_t* words) noexcept {
  if (n == 0) return;
  words[words_of_codes(n) - 1] = 0;
  std::memcpy(words, codes, static_cast<size_t>(n));
}

void unpack_codes(const uint64_t* words, int64_t n, uint8_t* codes) noexcept {
  if (n > 0) std::memcpy(codes, words, static_cast<size_t>(n));
}

namespace {

constexpr OpRow kFp8[] = {
    {"fp8_pack_words", "gradients to codes, eight in a 64-bit word: what ranks exchange",
     kUndirected, kBothFormats, LF_IN_TABLE(kReduceTable, pack)},
    {"fp8_unpack_words", "words back to fp32 sums", kUndirected, kBothFormats,
     LF_IN_TABLE(kReduceTable, unpack)},
};

}  // namespace

extern const Family kReduceFamily = {"reduce", LF_TABLE_FOR(kReduceTable), kFp8};

}  // namespace loongforge::kernels
