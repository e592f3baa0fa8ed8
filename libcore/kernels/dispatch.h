// How a kernel family finds the table of the active ISA. Each ISA folder that is compiled in
// defines one constant table per family, `extern const Table name = {...}` in namespace
// loongforge::kernels::<isa>. In <family>_dispatch.cpp, at namespace loongforge::kernels:
//   LF_DECLARE_TABLES(GemmTable, kGemmTable)
//   void gemm(...) noexcept { LF_TABLE(kGemmTable).gemm(...); }
// and, for lists of what is there, `extern const Family kGemmFamily = {...}` (op_list.h).
// Thread-safety: as isa.h.
#pragma once

#include "kernels/isa.h"

// Declared for every ISA; the table of one that is not compiled in (LF_HAVE_<NAME> is 0) is named
// in a discarded statement only, so nothing asks the linker for it.
#define LF_DECLARE_TABLE(name, NAME, value, folder, needs) \
  namespace folder {                                       \
  extern const name##Type name;                            \
  }
#define LF_RETURN_TABLE(name, NAME, value, folder, needs) \
  if constexpr (LF_HAVE_##NAME != 0)                      \
    if (isa == Isa::value) return folder::name;
#define LF_DECLARE_TABLES(Table, name)                               \
  using name##Type = Table;                                          \
  namespace scalar {                                                 \
  extern const name##Type name;                                      \
  }                                                                  \
  LF_VECTOR_ISAS(LF_DECLARE_TABLE, name)                             \
  static const Table& name##_of([[maybe_unused]] Isa isa) noexcept { \
    LF_VECTOR_ISAS(LF_RETURN_TABLE, name)                            \
    return scalar::name;                                             \
  }

#define LF_TABLE(name) name##_of(active_isa())

// For the family's description (op_list.h): whether an ISA's table has a function, and whose table
// runs.
#define LF_IN_TABLE(name, member) [](Isa isa) noexcept { return name##_of(isa).member != nullptr; }
#define LF_TABLE_FOR(name) \
  [](Isa isa) noexcept { return &name##_of(isa) == &scalar::name ? Isa::kScalar : isa; }
