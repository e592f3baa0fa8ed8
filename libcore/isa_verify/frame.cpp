#include "isa_verify/frame.h"

#include <cstddef>
#include <initializer_list>

namespace loongforge::isa_verify {
namespace {

using kernels::Isa;

class Code {
 public:
  std::vector<uint8_t> bytes;

  void put(std::initializer_list<int> values) {
    for (const int value : values) bytes.push_back(static_cast<uint8_t>(value));
  }
  void word(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
};

// ---- x86-64: rdi is the frame. Every access has a 32-bit displacement from rdi (ModRM 10 reg
// 111).

void x86_access(Code* code, std::initializer_list<int> opcode, int reg, size_t offset) {
  code->put(opcode);
  code->put({0x80 | reg << 3 | 7});
  code->word(static_cast<uint32_t>(offset));
}

std::vector<uint8_t> x86_function(Isa isa, const std::vector<uint8_t>& operation) {
  const bool wide = isa == Isa::kAvx512;
  Code code;
  code.put({0xF3, 0x0F, 0x1E, 0xFA});  // endbr64
  for (int i = 0; i < kRegisters; ++i) {
    const size_t at = offsetof(Frame, vectors) + static_cast<size_t>(i) * kVectorBytes;
    if (wide)
      x86_access(&code, {0x62, 0xF1, 0xFE, 0x48, 0x6F}, 1 + i, at);  // vmovdqu64 zmm, [rdi+at]
    else
      x86_access(&code, {0xC5, 0xFE, 0x6F}, 1 + i, at);  // vmovdqu ymm, [rdi+at]
  }
  if (wide) {
    for (int i = 0; i < 2; ++i)  // kmovq k, [rdi+at]
      x86_access(&code, {0xC4, 0xE1, 0xF8, 0x90}, 1 + i,
                 offsetof(Frame, masks) + static_cast<size_t>(i) * 8);
    code.put({0xC4, 0xE1, 0xE4, 0x47, 0xDB});  // kxorq k3, k3, k3
  }
  x86_access(&code, {0x48, 0x8B}, 1, offsetof(Frame, general));                  // mov rcx, ..
  x86_access(&code, {0x48, 0x8D}, 6, offsetof(Frame, memory) + kMemoryPointer);  // lea rsi, ..
  code.put({0x31, 0xC0});                                                        // xor eax, eax
  code.bytes.insert(code.bytes.end(), operation.begin(), operation.end());
  code.put({0x9C, 0x5A});                                            // pushfq; pop rdx
  x86_access(&code, {0x48, 0x89}, 2, offsetof(Frame, flags_out));    // mov .., rdx
  x86_access(&code, {0x48, 0x89}, 0, offsetof(Frame, general_out));  // mov .., rax
  if (wide) {
    x86_access(&code, {0x62, 0xF1, 0xFE, 0x48, 0x7F}, 1, offsetof(Frame, vector_out));
    x86_access(&code, {0xC4, 0xE1, 0xF8, 0x91}, 3, offsetof(Frame, mask_out));
  } else {
    x86_access(&code, {0xC5, 0xFE, 0x7F}, 1, offsetof(Frame, vector_out));
  }
  code.put({0xC5, 0xF8, 0x77, 0xC3});  // vzeroupper; ret
  return code.bytes;
}

// ---- LoongArch: $a0 is the frame; vector registers 1 to 4, $t0 to $t2 and $fcc0 are the caller's.

constexpr uint32_t kA0 = 4 << 5;

uint32_t offset12(size_t offset) { return static_cast<uint32_t>(offset & 0xFFF) << 10; }

std::vector<uint8_t> loongarch_function(Isa isa, const std::vector<uint8_t>& operation) {
  const bool wide = isa == Isa::kLasx;
  const uint32_t load = wide ? 0x2C800000 : 0x2C000000, store = wide ? 0x2CC00000 : 0x2C400000;
  constexpr uint32_t kLoad64 = 0x28C00000, kStore64 = 0x29C00000, kAddImmediate = 0x02C00000;
  constexpr uint32_t kT0 = 12, kT1 = 13, kT2 = 14;
  Code code;
  for (uint32_t i = 0; i < kRegisters; ++i)
    code.word(load | offset12(offsetof(Frame, vectors) + i * kVectorBytes) | kA0 | (1 + i));
  code.word(kLoad64 | offset12(offsetof(Frame, general)) | kA0 | kT0);
  code.word(0x00150000 | kT1);  // move $t1, $zero
  code.word(kAddImmediate | offset12(offsetof(Frame, memory) + kMemoryPointer) | kA0 | kT2);
  code.word(0x0114D800);  // movgr2cf $fcc0, $zero
  code.bytes.insert(code.bytes.end(), operation.begin(), operation.end());
  code.word(store | offset12(offsetof(Frame, vector_out)) | kA0 | 1);
  code.word(kStore64 | offset12(offsetof(Frame, general_out)) | kA0 | kT1);
  code.word(0x0114DC00 | kT1);  // movcf2gr $t1, $fcc0
  code.word(kStore64 | offset12(offsetof(Frame, flags_out)) | kA0 | kT1);
  code.word(0x4C000020);  // jirl $zero, $ra, 0
  return code.bytes;
}

}  // namespace

std::vector<uint8_t> make_function(const Operation& operation, int64_t immediate,
                                   int64_t immediate2) {
  const std::vector<uint8_t> code = encode(operation, immediate, immediate2);
  return is_loongarch(operation.isa) ? loongarch_function(operation.isa, code)
                                     : x86_function(operation.isa, code);
}

}  // namespace loongforge::isa_verify
