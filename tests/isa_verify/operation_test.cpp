// Rows of text: what they expand to, how they are encoded, which are refused.
#include "isa_verify/operation.h"

#include <doctest/doctest.h>

#include <set>

#include "isa_verify/operation_text.h"
#include "support/expect_error.h"

namespace loongforge::isa_verify {
namespace {

using kernels::Isa;

std::string hex(const std::vector<uint8_t>& code) {
  std::string text;
  for (const uint8_t byte : code) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

void refuse(const std::string& text, const char* says) {
  LF_CHECK_ERROR(parse_operations(text, "f"), ErrorCode::kBadData, says);
}

TEST_CASE("a row expands over element types and instruction sets") {
  const std::vector<Operation> rows = parse_operations(
      "# comment\n\nisa lsx lasx\n"
      "vslli.{b,h} ; 732c2000/772c2000+2000 ; vd,vj,ui{3,4} ; u{8,16} = j << i\n",
      "f");
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].mnemonic == "vslli.b");
  CHECK(rows[1].mnemonic == "vslli.h");
  CHECK(rows[3].mnemonic == "xvslli.h");
  CHECK(rows[3].isa == Isa::kLasx);
  CHECK(rows[3].vector_bytes == 32);
  CHECK(rows[0].vector_bytes == 16);
  CHECK(rows[1].immediates[0].high == 15);
  CHECK(rows[1].place == "f:4");
  CHECK(hex(encode(rows[0], 5, 0)) == "41342c73");  // 0x732c3441
  CHECK(assembly(rows[0], 5, 0) == "vslli.b $vr1, $vr2, 5");
  CHECK(hex(encode(rows[3], 15, 0)) == "417c2c77");
  CHECK(assembly(rows[3], 15, 0) == "xvslli.h $xr1, $xr2, 15");
}

TEST_CASE("LoongArch operands: positions, scales, signs, two immediates") {
  const Operation store = parse_operations(
      "isa lsx\nvstelm.h ; 31400000 ; vd,pj,si8*2,ui3@18 ; mem.u16 = n == i / 2 ? d[i2] : mem\n",
      "f")[0];
  CHECK(assembly(store, -6, 5) == "vstelm.h $vr1, $t2, -6, 5");
  CHECK(hex(encode(store, -6, 5)) == "c1f55731");
  CHECK(store.immediates[0].low == -64);  // what stays within the memory operand
  CHECK(store.immediates[0].high == 64);
  for (const int64_t value : immediate_values(store.immediates[0])) CHECK(value % 2 == 0);
  CHECK(immediate_values(store.immediates[1]).size() == 8);
  const Operation wide =
      parse_operations("isa lsx\nvldi ; 73e00000 ; vd,si13@5 ; u8 = i ; imm -4096..4095\n", "f")[0];
  const std::vector<int64_t> values = immediate_values(wide.immediates[0]);
  CHECK(std::set<int64_t>(values.begin(), values.end()).size() == values.size());
  CHECK(values.size() > 200);
  CHECK(values[0] == -4096);
  CHECK(values[1] == 4095);
}

TEST_CASE("x86 operands: the assembler's, with the immediate behind the bytes") {
  const Operation shuffle = parse_operations(
      "isa avx2\nvpshufd ; c5fd70caib ; ymm1,ymm2,i8 ; u32 = j[l + (i >> 2 * e & 3)]\n", "f")[0];
  CHECK(hex(encode(shuffle, 0x1B, 0)) == "c5fd70ca1b");
  CHECK(assembly(shuffle, 27, 0) == "vpshufd ymm1,ymm2,27");
  CHECK(shuffle.vector_bytes == 32);
  CHECK(immediate_values(shuffle.immediates[0]).size() == 256);
  const Operation masked = parse_operations(
      "isa avx512\nvaddps ; 62f16cc958cb ; zmm1{k1}{z},zmm2,zmm3 ; f32 = m >> n & 1 ? j + k : "
      "as(0, f32) ; ulp 1 ; optional ; given k.f32 = k == k ? k : j\n",
      "f")[0];
  CHECK(masked.vector_bytes == 64);
  CHECK(masked.ulp == 1);
  CHECK(masked.optional);
  CHECK(masked.given.size() == 1);
  CHECK(masked.form() == "vaddps zmm1{k1}{z},zmm2,zmm3");
}

TEST_CASE("rows that are wrong are refused by line and by what is wrong") {
  refuse("vadd ; 0 ; vd ; u8 = j\n", "f:1: no instruction set is named yet");
  refuse("isa mmx\n", "f:1: 'mmx' is no vector instruction set");
  refuse("isa scalar\n", "is no vector instruction set");
  refuse("isa lsx\nvadd ; 0 ; vd\n", "f:2: a row has at least four fields");
  refuse("isa lsx\n ; 0 ; vd ; u8 = j\n", "the mnemonic is missing");
  refuse("isa lsx\nx ; 7zz ; vd ; u8 = j\n", "'7zz' is no encoding");
  refuse("isa lsx\nx ; 70000001 ; vd ; u8 = j\n", "the encoding has ones where vd stands");
  refuse("isa lsx\nx ; 70000000 ; vq ; u8 = j\n", "'vq' is no operand");
  refuse("isa lsx\nx ; 70000000 ; vd,ui20 ; u8 = j\n", "'ui20' does not fit a word");
  refuse("isa lsx\nx ; 70000000 ; vd,ui3,ui3@13,ui3@16 ; u8 = j\n", "more than two immediates");
  refuse("isa lsx\nx ; 70000000 ; rd ; u8 = r\n", "the result is a vector, but no operand is one");
  refuse("isa lsx lasx\nx ; 70000000 ; vd ; u8 = j\n", "an encoding is missing for each ISA");
  refuse("isa avx2\nx ; c5f ; xmm1 ; u8 = j\n", "'c5f' is no encoding");
  refuse("isa avx2\nx ; c5ff00ib ; xmm1 ; u8 = j\n", "differ about an immediate");
  refuse("isa avx2\nx ; c5ff00 ; xmm1,i8 ; u8 = j\n", "differ about an immediate");
  refuse("isa avx2\nx.{a,b} ; {c5ff00,c5ff01,c5ff02} ; xmm1 ; u8 = j\n", "differ in length");
  refuse("isa avx2\nx ; c5ff00 ; xmm1{k1 ; u8 = j\n", "'{' is not closed");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; ulp -1\n", "ulp is for floating-point results");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; f32 = j ; ulp x\n", "'x' is no number");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; imm 0..3\n", "imm needs an immediate");
  refuse("isa avx2\nx ; c5ff00ib ; xmm1,i8 ; u8 = j ; imm 3..300\n", "the range does not fit");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; given q.u8 = 1\n", "names no input");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; maybe\n", "'maybe' is not understood");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = z\n", "'z' is not known");
  refuse("isa avx2\nx ; 90 ; zmm1 ; u8 = d\n", "f:2: zmm1 is no operand of avx2");
  refuse("isa avx2\nx ; 90 ; eax,zmm2 ; r.u32 = j\n", "zmm2 is no operand of avx2");
  refuse("isa lasx\nx ; 70000000 ; vd,vj,ui5,ui5 ; u8 = j\n",
         "ui5 stands where another operand does");
  refuse("isa lasx\nx ; 70000000 ; vd,vj,ui5@7 ; u8 = j\n",
         "ui5@7 stands where another operand does");
  refuse("isa lasx\nx ; 70000400 ; vd,vj,ui5 ; u8 = j\n", "the encoding has ones where ui5 stands");
  refuse("isa lasx\nx ; 70000000 ; vd,ui9@5,ui9@14 ; u8 = j\n", "more than 16 bits");
  refuse("isa lsx\nx ; 70000000 ; vd,ui5*3 ; u8 = j\n", "'ui5*3' does not fit a word");
  refuse("isa lsx\nx ; 70000000 ; vd,ui5*4 ; u8 = j ; imm 2..8\n", "the range does not fit");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; given k.none\n", "names no input");
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j ; given k.m.u8 = 1\n", "names no input");
}

TEST_CASE("a form stands in several rows for different immediates only") {
  const std::string row = "isa avx2\nx ; c5ff00ib ; ymm1,ymm2,i8 ; u8 = j + i ; imm ";
  CHECK(parse_operations("\xEF\xBB\xBF" + row + "0..3\n" + row + "4..7\n", "f").size() == 2);
  refuse(row + "0..3\n" + row + "3..7\n", "f:4: x ymm1,ymm2,i8 stands at f:2 already");
  refuse("isa lsx\nx ; 70000000 ; vd ; u8 = j\nx ; 70000000 ; vd ; u8 = k\n",
         "f:3: x vd stands at f:2");
}

TEST_CASE("rows that would not end, fill memory or disturb a terminal are refused") {
  refuse("isa avx2\nx\x1B[31m ; c5ff00 ; xmm1 ; u8 = j\n", "f:2: a character outside ASCII");
  refuse("isa avx2\nx\xC3\xA9 ; c5ff00 ; xmm1 ; u8 = j\n", "a character outside ASCII");
  CHECK(parse_operations("# \xC3\xA9\nisa avx2\n\tx ; c5ff00 ; xmm1 ; u8 = j\n", "f").size() == 1);
  refuse("isa avx2\nx ; c5ff00 ; xmm1 ; u8 = j" + std::string(5000, ' ') + "+ 1\n",
         "the line is longer than 4096 characters");
  std::string group = "x";
  for (int i = 0; i < 64; ++i) group += ",x";
  refuse("isa avx2\n{" + group + "} ; c5ff00 ; xmm1 ; u8 = j\n", "a group has more than 64 words");
  std::string rows = "isa avx2 avx512\n";
  for (int i = 0; i < 10001; ++i) rows += "x" + std::to_string(i) + " ; 90 ; xmm1 ; u8 = j\n";
  refuse(rows, "f:10002: more than 20000 operations");
  refuse("isa lsx\nx ; 70000000 ; vd ; u8 = collect(u8, collect(u8, j) != 0)\n",
         "collect() within collect()");
}

}  // namespace
}  // namespace loongforge::isa_verify
