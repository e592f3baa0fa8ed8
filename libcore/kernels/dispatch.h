// How a kernel family finds the table of the active ISA. Each ISA folder that is compiled in
// defines one constant table per family, `extern const Table name = {...}` in namespace
// loongforge::kernels::<isa>. In <family>_dispatch.cpp, at namespace loongforge::kernels:
//   LF_DECLARE_TABLES(GemmTable, kGemmTable)
//   void gemm(...) noexcept { LF_TABLE(kGemmTable).gemm(...); }
// and, for lists of what is there, `extern const Family kGemmFamily = {...}` (op_list.h).
// Thread-safety: as isa.h.
#pragma once

#include "kernels/isa.h"

#ifdef LF_HAVE_AVX2
#define LF_IF_AVX2(...) __VA_ARGS__
#else
#define LF_IF_AVX2(...)
#endif
#ifdef LF_HAVE_AVX512
#define LF_IF_AVX512(...) __VA_ARGS__
#else
#define LF_IF_AVX512(...)
#endif
#ifdef LF_HAVE_LSX
#define LF_IF_LSX(...) __VA_ARGS__
#else
#define LF_IF_LSX(...)
#endif
#ifdef LF_HAVE_LASX
#define LF_IF_LASX(...) __VA_ARGS__
#else
#define LF_IF_LASX(...)
#endif

#define LF_DECLARE_TABLES(Table, name)                        \
  namespace scalar {                                          \
  extern const Table name;                                    \
  }                                                           \
  LF_IF_AVX2(namespace avx2 { extern const Table name; })     \
  LF_IF_AVX512(namespace avx512 { extern const Table name; }) \
  LF_IF_LSX(namespace lsx { extern const Table name; })       \
  LF_IF_LASX(namespace lasx { extern const Table name; })     \
  static const Table& name##_of(Isa isa) noexcept {           \
    switch (isa) {                                            \
      LF_IF_AVX2(case Isa::kAvx2 : return avx2::name;)        \
      LF_IF_AVX512(case Isa::kAvx512 : return avx512::name;)  \
      LF_IF_LSX(case Isa::kLsx : return lsx::name;)           \
      LF_IF_LASX(case Isa::kLasx : return lasx::name;)        \
      default:                                                \
        return scalar::name;                                  \
    }                                                         \
  }

#define LF_TABLE(name) name##_of(active_isa())

// For the family's description (op_list.h): whether an ISA's table has a function, and whose table runs.
#define LF_IN_TABLE(name, member) \
  [](Isa isa) noexcept { return name##_of(isa).member != nullptr; }
#define LF_TABLE_FOR(name) \
  [](Isa isa) noexcept { return &name##_of(isa) == &scalar::name ? Isa::kScalar : isa; }
