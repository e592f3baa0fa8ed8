// Opcodes of Python's pickle: those that are read, and the names of all, for messages.
// Thread-safety: constants and a pure function.
#pragma once

#include <cstdint>
#include <string>

namespace loongforge::formats {

namespace op {
constexpr uint8_t kProto = 0x80, kGlobal = 0x63, kBinPut = 0x71, kLongBinPut = 0x72, kBinGet = 0x68,
                  kLongBinGet = 0x6a, kMark = 0x28, kTuple = 0x74, kTuple1 = 0x85, kTuple2 = 0x86,
                  kTuple3 = 0x87, kEmptyTuple = 0x29, kEmptyDict = 0x7d, kEmptyList = 0x5d,
                  kBinUnicode = 0x58, kBinInt = 0x4a, kBinInt1 = 0x4b, kBinInt2 = 0x4d,
                  kLong1 = 0x8a, kBinFloat = 0x47, kNewTrue = 0x88, kNewFalse = 0x89, kNone = 0x4e,
                  kSetItem = 0x73, kSetItems = 0x75, kAppend = 0x61, kAppends = 0x65, kBuild = 0x62,
                  kReduce = 0x52, kNewObj = 0x81, kBinPersId = 0x51, kStop = 0x2e;
}  // namespace op

// "0x63 (GLOBAL)".
std::string pickle_opcode_name(uint8_t opcode);

}  // namespace loongforge::formats
