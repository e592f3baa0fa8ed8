// Operands of LoongArch rows, where each stands in the word:
//   vd vj vk va        vector registers, bits 0, 5, 10, 15
//   rj rk              the general register $t0, bits 5, 10;  rd: $t1, bit 0;  pj: $t2, bit 5
//   cd                 $fcc0, bit 0
//   ui5 si10@5 si9*8   an immediate: width, lowest bit (default 10), scale (default 1)
#include <bit>
#include <charconv>

#include "base/error.h"
#include "isa_verify/operation_text.h"

namespace loongforge::isa_verify {
namespace {

struct RegisterOperand {
  const char* word;
  int position;  // of its lowest bit
  uint32_t number;
  const char* shown;  // vector registers: their number
  int bits = 5;
};
constexpr RegisterOperand kOperands[] = {
    {"vd", 0, 1, "1"},    {"vj", 5, 2, "2"},    {"vk", 10, 3, "3"},
    {"va", 15, 4, "4"},   {"rj", 5, 12, "$t0"}, {"rk", 10, 12, "$t0"},
    {"rd", 0, 13, "$t1"}, {"pj", 5, 14, "$t2"}, {"cd", 0, 0, "$fcc0", 3},
};

uint32_t bits_at(int position, int bits) {
  return static_cast<uint32_t>(((uint64_t{1} << bits) - 1) << position);
}

const RegisterOperand* register_operand(std::string_view word) {
  for (const RegisterOperand& operand : kOperands)
    if (word == operand.word) return &operand;
  return nullptr;
}

uint32_t word_of(std::string_view text, const std::string& where) {
  uint32_t value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || got.ec != std::errc() || got.ptr != text.data() + text.size())
    throw_bad_data(where, "'" + std::string(text) + "' is no encoding",
                   "LoongArch: a word in hex with its operand fields zero, base+step in a group");
  return value;
}

int small_number(std::string_view text, const std::string& where) {
  int value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || got.ec != std::errc() || got.ptr != text.data() + text.size() || value < 0 ||
      value > 64)
    throw_bad_data(where, "'" + std::string(text) + "' is no operand");
  return value;
}

Immediate immediate_of(std::string_view word, const std::string& where) {
  Immediate made;
  if (!word.starts_with("ui") && !word.starts_with("si"))
    throw_bad_data(where, "'" + std::string(word) + "' is no operand",
                   "known: vd vj vk va rd rj rk pj cd ui5 si10@5 si9*8");
  made.is_signed = word[0] == 's';
  made.position = 10;
  const size_t star = word.find('*'), at = word.find('@');
  if (star != std::string_view::npos) made.scale = small_number(word.substr(star + 1), where);
  const std::string_view before_star = word.substr(0, star);
  if (at != std::string_view::npos) made.position = small_number(before_star.substr(at + 1), where);
  made.bits =
      small_number(before_star.substr(2, at == std::string_view::npos ? at : at - 2), where);
  if (made.bits == 0 || made.bits > 16 || made.position + made.bits > 32 ||
      !std::has_single_bit(static_cast<unsigned>(made.scale)))
    throw_bad_data(where, "'" + std::string(word) + "' does not fit a word");
  const int64_t count = int64_t{1} << made.bits;
  made.low = made.is_signed ? -count / 2 * made.scale : 0;
  made.high = (made.is_signed ? count / 2 - 1 : count - 1) * made.scale;
  return made;
}

}  // namespace

void read_loongarch(Operation* operation, std::string_view encoding, int variant,
                    const std::string& where) {
  const size_t plus = encoding.find('+');
  uint32_t word = word_of(trimmed(encoding.substr(0, plus)), where);
  if (plus != std::string_view::npos)
    word += static_cast<uint32_t>(variant) * word_of(trimmed(encoding.substr(plus + 1)), where);
  size_t immediates = 0;
  int immediate_bits = 0;
  bool memory = false;
  uint32_t taken = 0, registers = 0;  // of the operands so far: their fields, and those filled in
  const auto take = [&](const std::string& part, uint32_t field) {
    if ((word & field) != 0)
      throw_bad_data(where, "the encoding has ones where " + part + " stands");
    if ((taken & field) != 0) throw_bad_data(where, part + " stands where another operand does");
    taken |= field;
  };
  for (const std::string& part : parts_of(operation->operands, ',')) {
    if (part.empty()) continue;
    if (const RegisterOperand* operand = register_operand(part)) {
      take(part, bits_at(operand->position, operand->bits));
      registers |= operand->number << operand->position;
      memory = memory || part == "pj";
      if (part[0] == 'v') operation->vector_bytes = operation->isa == kernels::Isa::kLasx ? 32 : 16;
      continue;
    }
    if (immediates == 2) throw_bad_data(where, "there are more than two immediates");
    const Immediate& made = operation->immediates[immediates++] = immediate_of(part, where);
    take(part, bits_at(made.position, made.bits));
    immediate_bits += made.bits;
  }
  if (immediate_bits > 16) throw_bad_data(where, "the immediates have more than 16 bits");
  word |= registers;
  // An offset must leave the access within the memory operand.
  Immediate& offset = operation->immediates[0];
  if (memory && offset.bits > 0) {
    offset.low = std::max<int64_t>(offset.low, -64);
    offset.high = std::min<int64_t>(offset.high, 64);
  }
  for (int i = 0; i < 4; ++i) operation->code.push_back(static_cast<uint8_t>(word >> (8 * i)));
}

std::string loongarch_assembly(const Operation& operation, int64_t immediate, int64_t immediate2) {
  std::string text = operation.mnemonic;
  const char* separator = " ";
  int64_t value = immediate;
  for (const std::string& part : parts_of(operation.operands, ',')) {
    if (part.empty()) continue;
    text += separator;
    separator = ", ";
    if (const RegisterOperand* operand = register_operand(part)) {
      if (part[0] == 'v') {
        text += '$';
        text += operation.isa == kernels::Isa::kLasx ? "xr" : "vr";
      }
      text += operand->shown;
    } else {
      text += std::to_string(value);
      value = immediate2;
    }
  }
  return text;
}

}  // namespace loongforge::isa_verify
