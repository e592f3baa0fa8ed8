// Operands of x86 rows are the assembler's own (Intel's order, destination first) with the fixed
// registers: xmm1 ymm2 zmm3, ecx rcx eax rax, k1 k2 k3, [rsi], i8 for an immediate byte, with {k1},
// {z} and {1to16} behind them. The encoding is the bytes in hex, the immediate byte written "ib".
#include "base/error.h"
#include "isa_verify/operation_text.h"

namespace loongforge::isa_verify {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int register_bytes(std::string_view operand) {
  if (operand.size() < 4 || operand.substr(1, 2) != "mm") return 0;
  return operand[0] == 'x' ? 16 : operand[0] == 'y' ? 32 : operand[0] == 'z' ? 64 : 0;
}

}  // namespace

void read_x86(Operation* operation, std::string_view encoding, const std::string& where) {
  std::string_view digits = encoding;
  const bool has_immediate = digits.ends_with("ib");
  if (has_immediate) digits.remove_suffix(2);
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) break;
    operation->code.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  if (operation->code.empty() || operation->code.size() > 14 ||
      operation->code.size() * 2 != digits.size())
    throw_bad_data(where, "'" + std::string(encoding) + "' is no encoding",
                   "x86: bytes in hex, ib for the immediate");
  if (has_immediate) operation->immediates[0] = {8, false, 0, 1, 0, 255};
  const std::vector<std::string> parts = parts_of(operation->operands, ',');
  if (has_immediate != (parts.back() == "i8"))
    throw_bad_data(where, "the encoding and the operands differ about an immediate");
  const int register_most = operation->isa == kernels::Isa::kAvx512 ? 64 : 32;
  int widest = 0;
  for (const std::string& part : parts) {
    if (register_bytes(part) > register_most)
      throw_bad_data(where, part + " is no operand of " + kernels::isa_name(operation->isa));
    widest = std::max(widest, register_bytes(part));
  }
  const bool to_vector = operation->formula.target() == Target::kVector;
  operation->vector_bytes = to_vector ? register_bytes(parts.front()) : widest;
}

std::string x86_assembly(const Operation& operation, int64_t immediate) {
  std::string operands = operation.operands;
  if (operands.ends_with("i8")) {
    operands.resize(operands.size() - 2);
    operands += std::to_string(immediate);
  }
  return operation.mnemonic + (operands.empty() ? "" : " " + operands);
}

}  // namespace loongforge::isa_verify
