// What one execution of an operation works on, at fixed offsets: machine code addresses it. And the
// code itself: a function that loads the operands from its argument, runs the operation once and
// stores what it left. Made as bytes for any ISA on any machine; runner.h runs what is for this
// one. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "isa_verify/operation.h"

namespace loongforge::isa_verify {

struct alignas(64) Frame {
  uint8_t vectors[kRegisters][kVectorBytes];
  uint8_t memory[kMemoryBytes];  // read and written by the operation
  uint64_t general;
  uint64_t masks[2];
  // What is left:
  uint64_t general_out;
  uint64_t mask_out;
  uint64_t flags_out;  // x86: EFLAGS; LoongArch: $fcc0
  alignas(64) uint8_t vector_out[kVectorBytes];
};
static_assert(sizeof(Frame) < 2048, "LoongArch reaches 2 KB from a base register");

// A function void(Frame*) around the operation's code. REQUIRES x86-64's or LoongArch's C calling
// convention where it is run; 64-byte frames.
std::vector<uint8_t> make_function(const Operation& operation, int64_t immediate,
                                   int64_t immediate2);

}  // namespace loongforge::isa_verify
