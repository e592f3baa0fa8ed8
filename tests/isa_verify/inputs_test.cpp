// Operands: the same for a seed, edges of the types that are read among them, what is given holds.
#include "isa_verify/inputs.h"

#include <doctest/doctest.h>

#include <set>

namespace loongforge::isa_verify {
namespace {

Operation row(const std::string& text) { return parse_operations("isa lsx\n" + text, "t")[0]; }

TEST_CASE("a seed gives the same operands, another one others") {
  const Operation add = row("vadd.w ; 700b0000 ; vd,vj,vk ; s32 = j + k\n");
  Inputs first(add, 5), again(add, 5), other(add, 6);
  for (int i = 0; i < 50; ++i) {
    const Operands a = first.next(0, 0), b = again.next(0, 0), c = other.next(0, 0);
    CHECK(a.vectors == b.vectors);
    CHECK(a.memory == b.memory);
    CHECK(a.general == b.general);
    CHECK(a.vectors != c.vectors);
  }
}

TEST_CASE("floating-point edges come up, in every register that is read") {
  const Operation fma = row("vfmadd.s ; 09100000 ; vd,vj,vk,va ; f32 = fma(j, k, a)\n");
  Inputs inputs(fma, 1);
  std::set<uint64_t> seen[3];
  int equal = 0, opposite = 0;
  for (int i = 0; i < 256; ++i) {
    const Operands operands = inputs.next(0, 0);
    for (int n = 0; n < 16; ++n) {
      uint64_t x[3];
      for (size_t reg = 0; reg < 3; ++reg) {
        x[reg] =
            static_cast<uint64_t>(load_element(operands.vectors[reg + 1].data(), Type::kF32, n));
        seen[reg].insert(x[reg]);
      }
      equal += x[0] == x[1] ? 1 : 0;
      opposite += x[0] == (x[1] ^ 0x80000000) ? 1 : 0;
    }
  }
  for (const std::set<uint64_t>& values : seen)
    for (const uint64_t edge :
         {0x0ull, 0x80000000ull, 0x1ull, 0x80000001ull, 0x7FFFFFull, 0x800000ull, 0x3F800000ull,
          0xBF800000ull, 0x7F7FFFFFull, 0x7F800000ull, 0xFF800000ull, 0x7FC00000ull, 0xFFC00005ull,
          0x7F800001ull, 0xFF800001ull, 0x3F000000ull, 0x40200000ull, 0x4F000000ull})
      CHECK_MESSAGE(values.contains(edge), "missing " << edge);
  CHECK(equal > 100);
  CHECK(opposite > 100);
}

TEST_CASE("integer edges of every width come up") {
  const Operation narrow =
      row("vssrani.h.w ; 73400000 ; vd,vj,ui5 ; s16 = sat(j.s32[n / 2], s16)\n");
  Inputs inputs(narrow, 1);
  std::set<int64_t> seen;
  for (int i = 0; i < 256; ++i) {
    const Operands operands = inputs.next(0, 0);
    for (int n = 0; n < 16; ++n)
      seen.insert(static_cast<int64_t>(load_element(operands.vectors[1].data(), Type::kS32, n)));
  }
  for (const int64_t edge :
       std::initializer_list<int64_t>{0, 1, -1, 127, 128, -128, 255, 256, 32767, 32768, -32768,
                                      65535, 65536, INT32_MAX, INT32_MIN, 1 << 20})
    CHECK_MESSAGE(seen.contains(edge), "missing " << edge);
}

TEST_CASE("what a row gives holds for every operand") {
  const Operation given =
      row("vdiv.bu ; 70e40000 ; vd,vj,vk ; u8 = j / k ; given k.u8 = k == 0 ? 1 : k ; given r.u64 "
          "= r & 7"
          " ; given m.u64 = 9\n");
  Inputs inputs(given, 3);
  for (int i = 0; i < 100; ++i) {
    const Operands operands = inputs.next(0, 0);
    for (const uint8_t k : operands.vectors[2]) CHECK(k != 0);
    CHECK(operands.general < 8);
    CHECK(operands.masks[0] == 9);
  }
}

}  // namespace
}  // namespace loongforge::isa_verify
