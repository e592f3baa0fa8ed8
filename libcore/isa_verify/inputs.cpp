#include "isa_verify/inputs.h"

#include <cstring>

namespace loongforge::isa_verify {
namespace {

uint64_t hash_of(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

// Edges of a format that its parameters give.
uint64_t format_edge(FloatFormat f, uint64_t which) {
  const uint64_t one = static_cast<uint64_t>(f.bias()) << f.fraction_bits;
  const uint64_t unit = uint64_t{1} << f.fraction_bits;
  switch (which) {
    case 0:
      return 0;
    case 1:
      return 1;  // the smallest subnormal
    case 2:
      return f.fraction_mask();  // the largest
    case 3:
      return unit;  // the smallest normal
    case 4:
      return unit + 1;
    case 5:
      return one;
    case 6:
      return one - 1;
    case 7:
      return one + 1;
    case 8:
      return one + unit / 2;  // 1.5
    case 9:
      return one + unit;  // 2
    case 10:
      return one - unit;  // 0.5
    case 11:
      return one - unit - 1;  // just below 0.5
    case 12:
      return f.infinity() - 1;  // the largest
    case 13:
      return f.infinity();
    case 14:
      return f.infinity() | f.quiet_bit();
    case 15:
      return f.infinity() | f.quiet_bit() | 5;
    case 16:
      return f.infinity() | 1;  // signalling
    case 17:
      return f.infinity() | (f.quiet_bit() - 1);
    case 18:
      return f.infinity() | f.fraction_mask();
    default:
      return one + unit * which;
  }
}
constexpr uint64_t kFormatEdges = 19;

// Values whose rounding to a narrower format, to an integer or to half of one is delicate, made
// from 64-bit floats: exact in f64, rounded elsewhere.
constexpr double kValues[] = {0.5,
                              1.5,
                              2.5,
                              3.5,
                              0.25,
                              0.75,
                              3,
                              4,
                              10,
                              100.5,
                              127.5,
                              128,
                              255.5,
                              256,
                              32767.5,
                              32768,
                              65504,
                              65519,
                              65519.996,
                              65520,
                              65535.5,
                              65536,
                              131008,
                              8388607.5,
                              8388608.5,
                              16777215,
                              16777217,
                              2147483647.5,
                              2147483648.0,
                              2147483904.0,
                              4294967295.5,
                              4294967296.0,
                              4503599627370495.5,
                              9007199254740993.0,
                              9223372036854775807.0,
                              18446744073709551615.0,
                              0x1p-14,
                              0x1p-15,
                              0x1p-24,
                              0x1p-25,
                              0x1.8p-25,
                              0x1p-126,
                              0x1p-127,
                              0x1p-149,
                              0x1p-150,
                              0x1.8p-149,
                              0x1.fffffep127,
                              0x1.ffffffp127,
                              0x1p128,
                              0x1.001p0,
                              0x1.002p0,
                              0x1.003p0,
                              0x1.0000010p0,
                              0x1.0000030p0,
                              0x1.000001fp0,
                              0x1p-1022,
                              0x1p-1074,
                              3.14159265358979,
                              1e10,
                              1e-10};

}  // namespace

Inputs::Inputs(const Operation& operation, uint64_t seed)
    : operation_(operation), state_(seed ^ hash_of(operation.form())) {}

uint64_t Inputs::random() {  // SplitMix64
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t Inputs::float_value(FloatFormat format) {
  const uint64_t sign = (random() & 1) != 0 ? format.sign_bit() : 0;
  switch (below(8)) {
    case 0:
    case 1:
    case 2:
      return sign | format_edge(format, below(kFormatEdges));
    case 3:
    case 4: {
      uint64_t bits = 0;
      const double value = kValues[below(std::size(kValues))];
      std::memcpy(&bits, &value, 8);
      return sign | SoftFloat(format, NanRule::kX86).convert_from(kDouble, bits);
    }
    case 5: {  // near 1: sums and products that do not vanish
      const uint64_t exponent = static_cast<uint64_t>(format.bias()) - 3 + below(7);
      return sign | exponent << format.fraction_bits | (random() & format.fraction_mask());
    }
    case 6:  // subnormal
      return sign | (random() & format.fraction_mask() >> below(4));
    default:
      return random() & (format.sign_bit() | (format.sign_bit() - 1));
  }
}

Uint128 Inputs::integer_value(int bits) {
  const Uint128 wide = Uint128{random()} << 64 | random();
  const auto small = static_cast<Int128>(below(33)) - 16;
  switch (below(6)) {
    case 0:
      return static_cast<Uint128>(small);
    case 1: {  // around the ends of every width, of either sign
      const int width = 8 << below(bits > 64 ? 5 : 4);
      const Uint128 end = width == 128 ? 0 : Uint128{1} << width;
      return (below(2) == 0 ? end : end >> 1 | (width == 128 ? Uint128{1} << 127 : 0)) +
             static_cast<Uint128>(small / 8);
    }
    case 2: {  // the negative ends
      const int width = 8 << below(bits > 64 ? 5 : 4);
      return ~Uint128{0} << (width - 1);
    }
    case 3:
      return Uint128{1} << below(static_cast<uint64_t>(bits));
    default:
      return wide;
  }
}

Uint128 Inputs::value(Type type) {
  if (is_float(type)) return float_value(float_format(type));
  return integer_value(8 * type_bytes(type));
}

// Now and then an element of one register is made a neighbour of another's, or its negative.
void Inputs::relate(Operands* operands) {
  const Type type = operation_.formula.type();
  for (int n = 0; n < kVectorBytes / type_bytes(type); ++n) {
    const uint64_t kind = below(16);
    if (kind > 2) continue;
    const Uint128 from = load_element(operands->vectors[1].data(), type, n);
    const Uint128 sign = Uint128{1} << (8 * type_bytes(type) - 1);
    const Uint128 step = static_cast<Uint128>(static_cast<Int128>(below(5)) - 2);
    store_element(operands->vectors[2].data(), type, n,
                  kind == 0   ? from
                  : kind == 1 ? from ^ sign
                              : (from + step) ^ (below(2) == 0 ? sign : 0));
  }
}

Operands Inputs::next(int64_t immediate, int64_t immediate2) {
  Operands operands;
  operands.immediate = immediate;
  operands.immediate2 = immediate2;
  for (int reg = 0; reg < kRegisters + 1; ++reg) {
    const bool memory = reg == kRegisters;
    uint8_t* bytes =
        memory ? operands.memory.data() : operands.vectors[static_cast<size_t>(reg)].data();
    const int size = memory ? kMemoryBytes : kVectorBytes;
    const std::vector<Type> types = operation_.formula.types_read(static_cast<Register>(reg));
    const Type type = types.empty() ? Type::kU64 : types[count_ % types.size()];
    for (int n = 0; n < size / type_bytes(type); ++n) store_element(bytes, type, n, value(type));
  }
  relate(&operands);
  operands.general = static_cast<uint64_t>(integer_value(64));
  for (uint64_t& mask : operands.masks)
    mask = below(8) == 0 ? 0 : below(7) == 0 ? ~uint64_t{0} : random();
  ++count_;
  for (const Given& given : operation_.given) {
    const NanRule rule = nan_rule(operation_.isa);
    if (given.input == Given::Input::kGeneral) {
      operands.general = static_cast<uint64_t>(given.formula.evaluate(operands, 0, rule));
    } else if (given.input == Given::Input::kMask) {
      operands.masks[0] = static_cast<uint64_t>(given.formula.evaluate(operands, 0, rule));
    } else {
      const Operands before = operands;
      const Type type = given.formula.type();
      for (int n = 0; n < kVectorBytes / type_bytes(type); ++n)
        store_element(operands.vectors[static_cast<size_t>(given.input)].data(), type, n,
                      given.formula.evaluate(before, n, rule));
    }
  }
  return operands;
}

}  // namespace loongforge::isa_verify
