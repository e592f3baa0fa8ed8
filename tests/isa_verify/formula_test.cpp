// Formulas: what they evaluate to, and which texts are refused with what words.
#include "isa_verify/formula.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace loongforge::isa_verify {
namespace {

Operands sample() {
  Operands operands;
  for (int n = 0; n < kVectorBytes; ++n) {
    operands.vectors[1][static_cast<size_t>(n)] = static_cast<uint8_t>(n);
    operands.vectors[2][static_cast<size_t>(n)] = static_cast<uint8_t>(200 + n);
  }
  for (int n = 0; n < kMemoryBytes; ++n)
    operands.memory[static_cast<size_t>(n)] = static_cast<uint8_t>(n);
  operands.general = 0x8000000000000001;
  operands.masks = {0b1010, 0b0110};
  operands.immediate = 5;
  operands.immediate2 = 2;
  return operands;
}

int64_t value(const char* text, int n = 0, NanRule rule = NanRule::kX86) {
  return static_cast<int64_t>(Formula::parse(text, "t").evaluate(sample(), n, rule));
}

std::string refusal(const std::string& text) {
  try {
    Formula::parse(text, "t:1");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadData);
    CHECK(error.where() == "t:1");
    return error.message();
  }
  return "accepted";
}

TEST_CASE("operators bind as in C") {
  CHECK(value("s32 = 2 + 3 * 4") == 14);
  CHECK(value("s32 = 1 << 2 + 1") == 8);
  CHECK(value("s32 = 6 & 3 == 3") == 0);  // as C has it: 3 == 3 first
  CHECK(value("s32 = 10 - 4 - 3") == 3);
  CHECK(value("s32 = 1 | 2 ^ 3 & 6") == 1);
  CHECK(value("s32 = -7 / 2") == -3);
  CHECK(value("s32 = -7 % 4") == -3);
  CHECK(value("s32 = ~0 < 0 ? 1 : 0 ? 2 : 3") == 1);
  CHECK(value("s32 = !5 + !0") == 1);
  CHECK(value("s32 = -8 >> 1") == -4);
  CHECK(value("s32 = (3 >= 3) + (3 > 3) * 10") == 1);
}

TEST_CASE("operands, indices and the names of places") {
  CHECK(value("u8 = j + k", 3) == 206);
  CHECK(value("s8 = k", 0) == -56);
  CHECK(value("u16 = j", 1) == 0x0302);
  CHECK(value("s16 = j.u8[2 * n + 1]", 2) == 5);
  CHECK(value("u8 = n * 100 + e * 10 + l", 17) == ((1700 + 10 + 16) & 255));
  CHECK(value("u8 = i * 10 + i2") == 52);
  CHECK(value("r.u32 = r") == 1);
  CHECK(value("u8 = mem", 2) == kMemoryPointer + 2);
  CHECK(value("u8 = mem[n - 3]", 2) == kMemoryPointer - 1);
  CHECK(value("m.u8 = m & m2") == 2);
  CHECK(value("u8 = in(2, 4)", 3) == 1);
  CHECK(value("u8 = in(2, 4)", 4) == 0);
}

TEST_CASE("integer functions") {
  CHECK(value("s8 = sat(300, s8)") == 127);
  CHECK(value("s8 = sat(-300, s8)") == -128);
  CHECK(value("u8 = sat(-1, u8)") == 0);
  CHECK(value("u8 = usat(-1, u8)") == 255);
  CHECK(value("s64 = min(3, -4) + max(3, -4)") == -1);
  CHECK(value("s64 = abs(-9)") == 9);
  CHECK(value("s64 = rsar(-5, 1)") == -2);
  CHECK(value("s64 = rshr(5, 1)") == 3);
  CHECK(value("s64 = rshr(5, 0)") == 5);
  CHECK(value("s64 = clz(1, 8)") == 7);
  CHECK(value("s64 = clz(0, 16)") == 16);
  CHECK(value("s64 = clz(1, 1 << 100)") == 127);
  CHECK(value("s64 = clz(1, -3)") == 0);
  CHECK(value("s64 = abs(1 << 127) >> 64") == INT64_MIN);
  CHECK(value("s64 = popcount(255) + u8(511) + s8(255)") == 8 + 255 - 1);
  CHECK(value("s64 = ushr(-1, 127)") == 1);
  CHECK(value("u16 = collect(u8, j.u8 & 1)") == 0xAAAA);
  CHECK(value("u128 = collect(u32, n == 5)", 1) == 2);
}

TEST_CASE("floating point: arithmetic, conversions, both machines' integers") {
  const int64_t two = 0x40000000, three = 0x40400000;
  CHECK(value("f32 = f32(1) + f32(1)") == two);
  CHECK(value("f32 = f32(2) * f32(3) - f32(3)") == three);
  CHECK(value("f32 = -f32(2)") == 0xC0000000);
  CHECK(value("f32 = sqrt(f32(4))") == two);
  CHECK(value("f32 = fms(f32(2), f32(2), f32(1))") == three);
  CHECK(value("f32 = nfma(f32(1), f32(1), f32(1))") == 0xC0000000);
  CHECK(value("f32 = fnma(f32(1), f32(1), f32(3))") == two);
  CHECK(value("f64 = f64(f32(2))") == 0x4000000000000000);
  CHECK(value("s32 = f32(2) < f32(3)") == 1);
  CHECK(value("s32 = un(as(0x7fc00000, f32), f32(1)) * 2 + (as(0x7fc00000, f32) != f32(1))") == 3);
  CHECK(value("f32 = x86max(as(0x7fc00000, f32), f32(2))") == two);
  CHECK(value("s32 = toint(f32(3000000000), s32, rz)") == INT32_MIN);
  CHECK(value("s32 = toint(f32(3000000000), s32, rz)", 0, NanRule::kLoongArch) == INT32_MAX);
  CHECK(value("s32 = toint(as(0x7fc00000, f32), s32, rz)", 0, NanRule::kLoongArch) == 0);
  CHECK(value("u32 = toint(f32(0) - f32(1), u32, rne)") == 0xFFFFFFFF);
  CHECK(value("u32 = class(as(1, f32)) + bits(daz(as(1, f32)))") == 256);
  CHECK(value("f32 = rint(as(0x40200000, f32), rne)") == two);
  CHECK(value("f32 = rint(as(0x40200000, f32), rp)") == three);
  CHECK(value("f32 = f32(as(0x4000, bf16)) + f32(as(0x3c00, f16))") == three);
}

TEST_CASE("what is not a formula is refused, by name") {
  CHECK(refusal("u8 = j +") == "formula 'u8 = j +': a value is missing at ''");
  CHECK(refusal("x8 = j").find("'x8' is no type") != std::string::npos);
  CHECK(refusal("u8 j").find("'=' is missing") != std::string::npos);
  CHECK(refusal("u8 = j k").find("'k' is not understood") != std::string::npos);
  CHECK(refusal("u8 = frob(j)").find("no function frob") != std::string::npos);
  CHECK(refusal("u8 = q").find("'q' is not known") != std::string::npos);
  CHECK(refusal("u8 = 12x").find("'12x' is no number") != std::string::npos);
  CHECK(refusal("u8 = j.f32").find("not of type u8") != std::string::npos);
  CHECK(refusal("f32 = j.u32").find("not of type f32") != std::string::npos);
  CHECK(refusal("f32 = j + k.f64").find("operands of + do not fit") != std::string::npos);
  CHECK(refusal("f32 = j & k").find("operands of & do not fit") != std::string::npos);
  CHECK(refusal("f32 = j ? j : k").find("takes an integer") != std::string::npos);
  CHECK(refusal("u8 = 1 ? j : j.f32").find("one type") != std::string::npos);
  CHECK(refusal("u8 = sat(j, f32)").find("takes an integer type") != std::string::npos);
  CHECK(refusal("s32 = toint(j.f32, s32, up)").find("no rounding") != std::string::npos);
  CHECK(refusal("s128 = toint(j.f32, s128, rz)").find("at most 64 bits") != std::string::npos);
  CHECK(refusal("u8 = collect(u8, 1 + collect(u8, j))").find("within") != std::string::npos);
  CHECK(refusal("f32 = fma(j, k, d.f64)").find("types differ") != std::string::npos);
  CHECK(refusal("m = j").find("needs a type") != std::string::npos);
  CHECK(refusal("none x").find("more behind none") != std::string::npos);
  CHECK(refusal("u8 = " + std::string(200, '(') + "j").find("nested too deep") !=
        std::string::npos);
  CHECK(refusal("u8 = " + std::string(200, '-') + "j").find("nested too deep") !=
        std::string::npos);
  std::string sum = "u8 = j";
  for (int i = 0; i < 600; ++i) sum += "+j";
  CHECK(refusal(sum).find("too long") != std::string::npos);
}

TEST_CASE("an element that is not there is an error when it is read") {
  CHECK_THROWS_AS(value("u8 = j[64]"), Error);
  CHECK_THROWS_AS(value("u8 = j[-1]"), Error);
  CHECK_THROWS_AS(value("u8 = mem[300]"), Error);
  CHECK_THROWS_AS(value("u8 = j[1 << 100]"), Error);
  CHECK_THROWS_AS(value("u128 = j[1 << 126]"), Error);
  CHECK_THROWS_AS(value("u128 = mem[1 << 127]"), Error);
  CHECK_THROWS_AS(value("u16 = mem[-65]"), Error);
  CHECK(value("u8 = mem[-128]") == 0);
  CHECK_THROWS_AS(value("u8 = 1 / (n - n)"), Error);
  CHECK(value("u8 = 0 ? j[64] : 7") == 7);  // only what is chosen is read
}

TEST_CASE("what a formula reads") {
  const Formula formula = Formula::parse("f32 = f32(j.f16[n]) + (k.u8 & 1 ? k : d)", "t");
  CHECK(formula.types_read(Register::kJ) == std::vector<Type>{Type::kF16});
  CHECK(formula.types_read(Register::kK) == std::vector<Type>{Type::kU8, Type::kF32});
  CHECK(formula.types_read(Register::kMemory).empty());
  CHECK_FALSE(formula.reads(FormulaNode::Op::kMask));
  CHECK(Formula::parse("none", "t").target() == Target::kNone);
  CHECK(Formula::parse("mem.u8 = j", "t").target() == Target::kMemory);
}

}  // namespace
}  // namespace loongforge::isa_verify
