#include "isa_verify/formula.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace loongforge::isa_verify {
namespace {

struct TypeInfo {
  const char* name;
  int bytes;
  bool is_signed;
  bool floating;
};
constexpr TypeInfo kTypes[] = {
    {"s8", 1, true, false},     {"u8", 1, false, false},  {"s16", 2, true, false},
    {"u16", 2, false, false},   {"s32", 4, true, false},  {"u32", 4, false, false},
    {"s64", 8, true, false},    {"u64", 8, false, false}, {"s128", 16, true, false},
    {"u128", 16, false, false}, {"f16", 2, false, true},  {"bf16", 2, false, true},
    {"f32", 4, false, true},    {"f64", 8, false, true},
};

const TypeInfo& info(Type type) { return kTypes[static_cast<int>(type)]; }

using Op = FormulaNode::Op;

// One evaluation: the operands, and which element is asked for.
class Evaluation {
 public:
  Evaluation(const std::vector<FormulaNode>& nodes, const std::string& where,
             const Operands& operands, Type result, int n, NanRule rule)
      : nodes_(nodes), where_(where), operands_(operands), result_(result), n_(n), rule_(rule) {
    const int lane = std::max(16 / type_bytes(result), 1);
    e_ = ((n % lane) + lane) % lane;
  }

  Uint128 value(int index) const {
    const FormulaNode& node = nodes_[static_cast<size_t>(index)];
    switch (node.op) {
      case Op::kConstant:
        return static_cast<Uint128>(node.constant);
      case Op::kN:
        return static_cast<Uint128>(Int128{n_});
      case Op::kE:
        return static_cast<Uint128>(Int128{e_});
      case Op::kL:
        return static_cast<Uint128>(Int128{n_ - e_});
      case Op::kImmediate:
        return static_cast<Uint128>(Int128{operands_.immediate});
      case Op::kImmediate2:
        return static_cast<Uint128>(Int128{operands_.immediate2});
      case Op::kGeneral:
        return operands_.general;
      case Op::kMask:
        return operands_.masks[0];
      case Op::kMask2:
        return operands_.masks[1];
      case Op::kLoad:
        return load(node);
      case Op::kSelect:
        return child(node, child(node, 0) != 0 ? 1 : 2);
      default:
        return node.op < Op::kFNegate ? integer(node) : floating(node);
    }
  }

 private:
  Uint128 child(const FormulaNode& node, int which) const {
    return value(node.children[static_cast<size_t>(which)]);
  }
  Int128 signed_child(const FormulaNode& node, int which) const {
    return static_cast<Int128>(child(node, which));
  }
  uint64_t bits(const FormulaNode& node, int which) const {
    return static_cast<uint64_t>(child(node, which));
  }

  Uint128 load(const FormulaNode& node) const {
    const Int128 index = node.children[0] >= 0 ? signed_child(node, 0) : Int128{n_};
    const int bytes = type_bytes(node.type);
    const bool memory = node.reg == Register::kMemory;
    const int below = memory ? kMemoryPointer / bytes : 0;
    const int count = (memory ? kMemoryBytes : kVectorBytes) / bytes;
    if (index < -below || index >= count - below)
      throw_bad_data(where_, "the formula reads element " +
                                 std::to_string(static_cast<long long>(index)) + " of " +
                                 type_name(node.type) + ", which is not there");
    const uint8_t* from =
        memory ? operands_.memory.data() : operands_.vectors[static_cast<size_t>(node.reg)].data();
    return load_element(from, node.type, static_cast<int>(index) + below);
  }

  // A number of bits, of a shift: below 0 it counts as 0, and from 128 on everything is shifted
  // out.
  int count(const FormulaNode& node) const {
    return static_cast<int>(std::clamp<Int128>(signed_child(node, 1), 0, 128));
  }

  Uint128 divide(const FormulaNode& node) const {
    const Int128 a = signed_child(node, 0), b = signed_child(node, 1);
    if (b == 0) throw_bad_data(where_, "the formula divides by zero");
    const Int128 lowest = static_cast<Int128>(Uint128{1} << 127);
    if (a == lowest && b == -1) return node.op == Op::kDivide ? static_cast<Uint128>(a) : 0;
    return static_cast<Uint128>(node.op == Op::kDivide ? a / b : a % b);
  }

  static Uint128 arithmetic_shift(Uint128 x, int n) {
    return static_cast<Uint128>(static_cast<Int128>(x) >> std::min(n, 127));
  }
  static Uint128 logical_shift(Uint128 x, int n) { return n > 127 ? 0 : x >> n; }

  // With the last bit shifted out added: to nearest, halves up.
  Uint128 rounding_shift(const FormulaNode& node) const {
    const Uint128 x = child(node, 0);
    const int n = count(node);
    const Uint128 carry = n > 0 && n <= 128 ? x >> (n - 1) & 1 : 0;
    return (node.op == Op::kRoundShift ? arithmetic_shift(x, n) : logical_shift(x, n)) + carry;
  }

  Uint128 saturated(const FormulaNode& node) const {
    const TypeInfo& type = info(node.type);
    const int magnitude = type.bytes * 8 - (type.is_signed ? 1 : 0);
    const Uint128 highest = magnitude == 128 ? ~Uint128{0} : (Uint128{1} << magnitude) - 1;
    const Uint128 x = child(node, 0);
    if (node.op == Op::kSaturateUnsigned) return std::min(x, highest);
    const Int128 lowest = type.is_signed ? -static_cast<Int128>(highest) - 1 : 0;
    const auto value = static_cast<Int128>(x);
    if (value < lowest) return static_cast<Uint128>(lowest);
    return value > 0 && static_cast<Uint128>(value) > highest ? highest : x;
  }

  Uint128 integer(const FormulaNode& node) const {
    switch (node.op) {
      case Op::kNegate:
        return -child(node, 0);
      case Op::kInvert:
        return ~child(node, 0);
      case Op::kNot:
        return child(node, 0) == 0;
      case Op::kAdd:
        return child(node, 0) + child(node, 1);
      case Op::kSubtract:
        return child(node, 0) - child(node, 1);
      case Op::kMultiply:
        return child(node, 0) * child(node, 1);
      case Op::kDivide:
      case Op::kModulo:
        return divide(node);
      case Op::kAnd:
        return child(node, 0) & child(node, 1);
      case Op::kOr:
        return child(node, 0) | child(node, 1);
      case Op::kXor:
        return child(node, 0) ^ child(node, 1);
      case Op::kShiftLeft: {
        const int n = count(node);
        return n > 127 ? 0 : child(node, 0) << n;
      }
      case Op::kShiftRight:
        return arithmetic_shift(child(node, 0), count(node));
      case Op::kShiftRightUnsigned:
        return logical_shift(child(node, 0), count(node));
      case Op::kRoundShift:
      case Op::kRoundShiftUnsigned:
        return rounding_shift(node);
      case Op::kLess:
        return signed_child(node, 0) < signed_child(node, 1);
      case Op::kLessEqual:
        return signed_child(node, 0) <= signed_child(node, 1);
      case Op::kEqual:
        return child(node, 0) == child(node, 1);
      case Op::kNotEqual:
        return child(node, 0) != child(node, 1);
      default:
        return integer_function(node);
    }
  }

  // One bit for each element of node.type in the 128 bits around element n: whether the expression
  // holds there.
  Uint128 collect(const FormulaNode& node) const {
    const int per_lane = 16 / type_bytes(node.type);
    const int first = n_ * type_bytes(result_) / 16 * per_lane;
    Uint128 bits = 0;
    for (int q = 0; q < per_lane; ++q) {
      const Evaluation inner(nodes_, where_, operands_, node.type, first + q, rule_);
      if (inner.value(node.children[0]) != 0) bits |= Uint128{1} << q;
    }
    return bits;
  }

  Uint128 integer_function(const FormulaNode& node) const {
    if (node.op == Op::kCollect) return collect(node);
    const Int128 x = signed_child(node, 0);
    switch (node.op) {
      case Op::kMin:
        return static_cast<Uint128>(std::min(x, signed_child(node, 1)));
      case Op::kMax:
        return static_cast<Uint128>(std::max(x, signed_child(node, 1)));
      case Op::kAbs:
        return x < 0 ? -static_cast<Uint128>(x) : static_cast<Uint128>(x);
      case Op::kSaturate:
      case Op::kSaturateUnsigned:
        return saturated(node);
      case Op::kCast:
        return cut_to(node.type, static_cast<Uint128>(x));
      case Op::kLeadingZeros: {  // of the lowest child(1) bits
        const int bits = count(node);
        int zeros = bits;
        while (zeros > 0 && logical_shift(static_cast<Uint128>(x), bits - zeros) != 0) --zeros;
        return static_cast<Uint128>(zeros);
      }
      case Op::kPopulation:
        return static_cast<Uint128>(std::popcount(static_cast<uint64_t>(x)) +
                                    std::popcount(static_cast<uint64_t>(x >> 64)));
      case Op::kIn:
        return x <= n_ && n_ < signed_child(node, 1);
      default:
        return 0;
    }
  }

  Uint128 floating(const FormulaNode& node) const {
    if (node.op == Op::kFromInt)
      return SoftFloat(float_format(node.type), rule_).from_int(signed_child(node, 0));
    const FloatFormat format = float_format(node.from);
    const SoftFloat soft(format, rule_);
    const uint64_t x = bits(node, 0);
    const auto y = [&] { return bits(node, 1); };
    switch (node.op) {
      case Op::kFNegate:
        return x ^ format.sign_bit();
      case Op::kFAbs:
        return x & ~format.sign_bit();
      case Op::kFAdd:
        return soft.add(x, y());
      case Op::kFSubtract:
        return soft.subtract(x, y());
      case Op::kFMultiply:
        return soft.multiply(x, y());
      case Op::kFDivide:
        return soft.divide(x, y());
      case Op::kFLess:
        return soft.compare(x, y()) == Order::kLess;
      case Op::kFLessEqual: {
        const Order order = soft.compare(x, y());
        return order == Order::kLess || order == Order::kEqual;
      }
      case Op::kFEqual:
        return soft.compare(x, y()) == Order::kEqual;
      case Op::kFNotEqual:
        return soft.compare(x, y()) != Order::kEqual;
      case Op::kUnordered:
        return soft.compare(x, y()) == Order::kUnordered;
      case Op::kFma:
        return soft.fma(x, y(), bits(node, 2), node.signs);
      case Op::kFSqrt:
        return soft.sqrt(x);
      case Op::kFRsqrt:
        return soft.rsqrt(x);
      case Op::kMaxNum:
        return soft.max_num(x, y(), false);
      case Op::kMinNum:
        return soft.min_num(x, y(), false);
      case Op::kMaxMagnitude:
        return soft.max_num(x, y(), true);
      case Op::kMinMagnitude:
        return soft.min_num(x, y(), true);
      // x86: the second operand unless the first is really beyond it.
      case Op::kX86Max:
        return soft.compare(x, y()) == Order::kGreater ? x : y();
      case Op::kX86Min:
        return soft.compare(x, y()) == Order::kLess ? x : y();
      default:
        return floating_unary(node, format, soft, x);
    }
  }

  Uint128 floating_unary(const FormulaNode& node, FloatFormat format, const SoftFloat& soft,
                         uint64_t x) const {
    switch (node.op) {
      case Op::kFRecip: {
        if (format.is_nan(x)) return soft.quiet(x);
        return soft.divide(soft.from_int(1), x);
      }
      case Op::kRoundIntegral:
        return soft.round_to_integral(x, node.rounding);
      case Op::kLogB:
        return soft.log_b(x);
      case Op::kClass:
        return float_class(format, x);
      case Op::kConvert:
        return SoftFloat(float_format(node.type), rule_).convert_from(format, x);
      case Op::kFlushSubnormal:
        return format.is_subnormal(x) ? x & format.sign_bit() : x;
      case Op::kToInt:
        return integer_of(node, format, x);
      default:
        return x;  // kBits, kAs
    }
  }

  // What has no place in the type: LoongArch takes the nearest that has, 0 for a NaN; x86 one
  // value.
  Uint128 integer_of(const FormulaNode& node, FloatFormat format, uint64_t x) const {
    const Int128 exact = to_int(format, x, node.rounding);
    const TypeInfo& type = info(node.type);
    const int magnitude = type.bytes * 8 - (type.is_signed ? 1 : 0);
    const Int128 highest = (Int128{1} << magnitude) - 1;
    const Int128 lowest = type.is_signed ? -highest - 1 : 0;
    if (rule_ == NanRule::kLoongArch)
      return static_cast<Uint128>(std::clamp(exact, lowest, highest));
    const bool fits = !format.is_nan(x) && exact >= lowest && exact <= highest;
    return static_cast<Uint128>(fits ? exact : type.is_signed ? lowest : highest);
  }

  const std::vector<FormulaNode>& nodes_;
  const std::string& where_;
  const Operands& operands_;
  Type result_;
  int n_, e_ = 0;
  NanRule rule_;
};

}  // namespace

int type_bytes(Type type) { return info(type).bytes; }
bool is_float(Type type) { return info(type).floating; }
const char* type_name(Type type) { return info(type).name; }

FloatFormat float_format(Type type) {
  return type == Type::kF16    ? kHalf
         : type == Type::kBf16 ? kBfloat16
         : type == Type::kF32  ? kSingle
                               : kDouble;
}

bool parse_type(std::string_view name, Type* type) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (name != kTypes[i].name) continue;
    *type = static_cast<Type>(i);
    return true;
  }
  return false;
}

Uint128 cut_to(Type type, Uint128 value) {
  const int unused = 128 - 8 * type_bytes(type);
  if (unused == 0) return value;
  value <<= unused;
  return info(type).is_signed ? static_cast<Uint128>(static_cast<Int128>(value) >> unused)
                              : value >> unused;
}

// Both supported machines are little-endian.
Uint128 load_element(const uint8_t* bytes, Type type, int n) {
  Uint128 value = 0;
  std::memcpy(&value, bytes + n * type_bytes(type), static_cast<size_t>(type_bytes(type)));
  return cut_to(type, value);
}

void store_element(uint8_t* bytes, Type type, int n, Uint128 value) {
  std::memcpy(bytes + n * type_bytes(type), &value, static_cast<size_t>(type_bytes(type)));
}

std::vector<Type> Formula::types_read(Register reg) const {
  std::vector<Type> types;
  for (const FormulaNode& node : nodes_)
    if (node.op == Op::kLoad && node.reg == reg &&
        std::find(types.begin(), types.end(), node.type) == types.end())
      types.push_back(node.type);
  return types;
}

bool Formula::reads(FormulaNode::Op op) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const FormulaNode& node) { return node.op == op; });
}

Uint128 Formula::evaluate(const Operands& operands, int n, NanRule rule) const {
  const Evaluation evaluation(nodes_, where_, operands, type_, n, rule);
  return cut_to(type_, evaluation.value(static_cast<int>(nodes_.size()) - 1));
}

}  // namespace loongforge::isa_verify
