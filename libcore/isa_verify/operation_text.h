// How tables of operations are read: parts that parse_operations() is made of. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isa_verify/operation.h"

namespace loongforge::isa_verify {

std::string_view trimmed(std::string_view text);
// Split at the separator, each part trimmed.
std::vector<std::string> parts_of(std::string_view text, char separator);

// "v{a,b}.{x,y}" -> "va.x", "vb.y": groups with a comma advance together; others stay as they are.
// Error(kBadData) where groups differ in length.
std::vector<std::string> expand_groups(const std::string& row, const std::string& where);

// Fill operation->code, immediates and vector_bytes from the encoding and operation->operands.
// variant: which of the row's expansions, counts the steps of a LoongArch encoding.
void read_loongarch(Operation* operation, std::string_view encoding, int variant,
                    const std::string& where);
void read_x86(Operation* operation, std::string_view encoding, const std::string& where);
std::string loongarch_assembly(const Operation& operation, int64_t immediate, int64_t immediate2);
std::string x86_assembly(const Operation& operation, int64_t immediate);

}  // namespace loongforge::isa_verify
