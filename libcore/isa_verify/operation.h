// One vector operation as data: its name, its encoding, its operands and what it computes. Tables
// of them are text (README.md describes a row); the built-in ones stand in tables/, others are read
// from a file at run time. Nothing here needs an assembler or the CPU in question.
//
// Registers are fixed, so that an encoding is complete: vector registers 1 to 4 hold d, j, k, a. On
// x86 rcx holds r, rax takes a general result, rsi points to memory, k1 and k2 hold the masks, k3
// takes a mask. On LoongArch $t0 holds r, $t1 takes a general result, $t2 points to memory, $fcc0
// takes a flag.
// Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa_verify/formula.h"
#include "kernels/isa.h"

namespace loongforge::isa_verify {

struct Immediate {
  int bits = 0;  // 0: the operation has none
  bool is_signed = false;
  int position = 0;           // LoongArch: its lowest bit in the word; x86: it is the last byte
  int scale = 1;              // what the assembler shows is scale times the field
  int64_t low = 0, high = 0;  // of what is shown
};

// What an input is made to be before the operation sees it, where the architecture leaves the
// result for other inputs open: a formula without a target of its own.
struct Given {
  enum class Input : uint8_t { kD, kJ, kK, kA, kGeneral, kMask } input = Input::kD;
  Formula formula;
};

struct Operation {
  kernels::Isa isa = kernels::Isa::kScalar;
  std::string mnemonic;
  std::string operands;       // as the assembler takes them, immediates as "ui5" or "i8"
  std::vector<uint8_t> code;  // fields of immediates are zero; x86: without the immediate byte
  std::array<Immediate, 2> immediates{};
  int vector_bytes = 0;  // of the result, or of the widest operand where it is no vector; may be 0
  Formula formula;
  std::string formula_text;
  std::vector<Given> given;
  uint64_t ulp = 0;       // how far from the reference a result may be
  bool optional = false;  // an extension that a CPU with this ISA may lack
  std::string place;      // "lsx_integer:12": where its row stands

  // Whether results are floating-point numbers, whose distances count.
  bool float_result() const {
    return (formula.target() == Target::kVector || formula.target() == Target::kMemory) &&
           is_float(formula.type());
  }
  // "vadd.b vd,vj,vk": names the operation within its ISA.
  std::string form() const { return mnemonic + (operands.empty() ? "" : " " + operands); }
};

// Rows of text, expanded. name stands for the text in errors: Error(kBadData) "<name>:<line>".
LF_API std::vector<Operation> parse_operations(std::string_view text, const std::string& name);

// The machine code with its immediates filled in. REQUIRES they lie within low and high.
std::vector<uint8_t> encode(const Operation& operation, int64_t immediate, int64_t immediate2);
// The same as an assembler takes it: "vslli.b $vr1, $vr2, 3"; Intel's syntax on x86.
std::string assembly(const Operation& operation, int64_t immediate, int64_t immediate2);
// Values to try: all where there are no more than 256, else the ends, powers of two and some
// between.
std::vector<int64_t> immediate_values(const Immediate& immediate);

NanRule nan_rule(kernels::Isa isa);
bool is_loongarch(kernels::Isa isa);

// All rows of tables/, in their order.
LF_API const std::vector<Operation>& built_in_operations();

}  // namespace loongforge::isa_verify
