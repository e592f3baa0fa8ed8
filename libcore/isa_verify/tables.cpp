#include "isa_verify/operation.h"

namespace loongforge::isa_verify {
namespace {

struct Table {
  const char* name;
  const char* text;
};

// Each is one string literal, so that the file reads as --ops takes it.
constexpr Table kTables[] = {
    {
        "lsx_integer.def",
#include "isa_verify/tables/lsx_integer.def"
    },
    {
        "lsx_bits.def",
#include "isa_verify/tables/lsx_bits.def"
    },
    {
        "lsx_shift.def",
#include "isa_verify/tables/lsx_shift.def"
    },
    {
        "lsx_shuffle.def",
#include "isa_verify/tables/lsx_shuffle.def"
    },
    {
        "lsx_float.def",
#include "isa_verify/tables/lsx_float.def"
    },
    {
        "lsx_convert.def",
#include "isa_verify/tables/lsx_convert.def"
    },
    {
        "avx2_float.def",
#include "isa_verify/tables/avx2_float.def"
    },
    {
        "avx2_integer.def",
#include "isa_verify/tables/avx2_integer.def"
    },
    {
        "avx2_move.def",
#include "isa_verify/tables/avx2_move.def"
    },
    {
        "avx512_float.def",
#include "isa_verify/tables/avx512_float.def"
    },
    {
        "avx512_integer.def",
#include "isa_verify/tables/avx512_integer.def"
    },
    {
        "avx512_move.def",
#include "isa_verify/tables/avx512_move.def"
    },
};

}  // namespace

const std::vector<Operation>& built_in_operations() {
  static const std::vector<Operation> operations = [] {
    std::vector<Operation> all;
    for (const Table& table : kTables)
      for (Operation& operation : parse_operations(table.text, table.name))
        all.push_back(std::move(operation));
    return all;
  }();
  return operations;
}

}  // namespace loongforge::isa_verify
