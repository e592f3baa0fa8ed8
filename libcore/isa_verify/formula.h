// The reference formula of an operation, read from text: what one element of the result is, as an
// expression of the operands.
//
//   formula   = [target "."] type "=" expression       target: d (default), mem, r, m, f
//   primary   = number | n | e | l | i | i2 | r | m | operand | function "(" ... ")" | "(" ... ")"
//   operand   = register ["." type] ["[" expression "]"]    register: d j k a mem
//
// n is the number of the element, e = n % (elements of 128 bits), l = n - e; i and i2 are
// immediates, r the general register, m the mask. An operand without a type has that of the result,
// one without an index is element n; mem counts from the pointer and may be indexed below it.
// Operators are C's
// (?: | ^ & == != < <= > >= << >> + - * / % - ~ !); >> is arithmetic, & | on conditions do not stop
// early. Integers are of 128 bits, wrap, and are cut to the type of the result; floating-point
// operands (f16 bf16 f32 f64) have + - * / - and comparisons and must be of one type.
// Functions: README.md beside this file lists them.
//
// Thread-safety: a Formula is a value; evaluation from several threads, each with its Operands.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "isa_verify/soft_float.h"

namespace loongforge::isa_verify {

enum class Type : uint8_t {
  kS8,
  kU8,
  kS16,
  kU16,
  kS32,
  kU32,
  kS64,
  kU64,
  kS128,
  kU128,
  kF16,
  kBf16,
  kF32,
  kF64
};

int type_bytes(Type type);
LF_API bool is_float(Type type);
FloatFormat float_format(Type type);  // REQUIRES is_float(type)
const char* type_name(Type type);     // "s8", "f32"
bool parse_type(std::string_view name, Type* type);

enum class Register : uint8_t { kD, kJ, kK, kA, kMemory };
inline constexpr int kRegisters = 4;        // without memory
inline constexpr int kVectorBytes = 64;     // the widest vector register
inline constexpr int kMemoryBytes = 256;    // the memory operand, and
inline constexpr int kMemoryPointer = 128;  // where in it the pointer points

// The operands of one execution.
struct Operands {
  std::array<std::array<uint8_t, kVectorBytes>, kRegisters> vectors{};
  std::array<uint8_t, kMemoryBytes> memory{};
  uint64_t general = 0;
  std::array<uint64_t, 2> masks{};
  int64_t immediate = 0, immediate2 = 0;
};

enum class Target : uint8_t { kVector, kMemory, kGeneral, kMask, kFlags, kNone };

struct FormulaNode {
  enum class Op : uint8_t {
    kConstant,
    kN,
    kE,
    kL,
    kImmediate,
    kImmediate2,
    kGeneral,
    kMask,
    kMask2,
    kLoad,
    kNegate,
    kInvert,
    kNot,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kAnd,
    kOr,
    kXor,
    kShiftLeft,
    kShiftRight,
    kLess,
    kLessEqual,
    kEqual,
    kNotEqual,
    kSelect,
    kMin,
    kMax,
    kAbs,
    kShiftRightUnsigned,
    kRoundShift,
    kRoundShiftUnsigned,
    kSaturate,
    kSaturateUnsigned,
    kCast,
    kLeadingZeros,
    kPopulation,
    kIn,
    kCollect,
    kFNegate,
    kFAdd,
    kFSubtract,
    kFMultiply,
    kFDivide,
    kFLess,
    kFLessEqual,
    kFEqual,
    kFNotEqual,
    kFma,
    kFSqrt,
    kFRecip,
    kFRsqrt,
    kMaxNum,
    kMinNum,
    kMaxMagnitude,
    kMinMagnitude,
    kX86Max,
    kX86Min,
    kRoundIntegral,
    kLogB,
    kClass,
    kUnordered,
    kToInt,
    kFromInt,
    kConvert,
    kBits,
    kAs,
    kFlushSubnormal,
    kFAbs
  };
  Op op = Op::kConstant;
  bool floating = false;  // the value is one of type; else an integer of 128 bits
  Register reg = Register::kD;
  Type type = Type::kU8;  // of a floating value, of what is loaded, of a cast
  Type from = Type::kU8;  // kConvert, kToInt, kBits, kClass, comparisons: the operands' type
  Rounding rounding = Rounding::kNearestEven;
  FmaSigns signs{};
  std::array<int, 3> children{-1, -1, -1};
  Int128 constant = 0;
};

class LF_API Formula {
 public:
  // where names the place in errors. "none" is the formula of an operation without a result. Throws
  // Error(kBadData).
  static Formula parse(std::string_view text, const std::string& where);

  Target target() const { return target_; }
  Type type() const { return type_; }
  // The types that the expression reads this register as; empty: it does not read it.
  std::vector<Type> types_read(Register reg) const;
  bool reads(FormulaNode::Op op) const;  // whether the expression holds such a node

  // Element n, cut to type(). REQUIRES target() != kNone. Throws Error(kBadData) where the
  // expression reads an element that is not there or divides by zero.
  Uint128 evaluate(const Operands& operands, int n, NanRule rule) const;

 private:
  friend class FormulaParser;
  Target target_ = Target::kNone;
  Type type_ = Type::kU8;
  std::string where_;
  std::vector<FormulaNode> nodes_;  // children before their parents: the last one is the root
};

// The bytes of element n (of the register; of memory from the pointer) as an integer, sign-extended
// for signed types, and stored back. REQUIRES the element is there.
Uint128 load_element(const uint8_t* bytes, Type type, int n);
void store_element(uint8_t* bytes, Type type, int n, Uint128 value);
Uint128 cut_to(Type type, Uint128 value);  // modulo 2^bits, sign-extended for signed types

}  // namespace loongforge::isa_verify
