// AVX-512 intrinsics: the CPU's own, or (test builds) an emulation that any AVX2 machine runs.
#pragma once

#ifdef LF_EMULATE_AVX512
#include "support/emu/avx512.h"
#else
// g++ 12 warns of its own header's deliberately undefined pass-through operands.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
