// Rows for this machine's first vector instruction set, right and planted wrong.
#pragma once

#include <string>

#include "isa_verify/verify.h"

namespace loongforge::isa_verify {

#if defined(__x86_64__)
inline constexpr kernels::Isa kHere = kernels::Isa::kAvx2;
inline constexpr kernels::Isa kElsewhere = kernels::Isa::kLsx;
inline const std::string kRight =
    "isa avx2\nlf.add ; c5ec58cb ; ymm1,ymm2,ymm3 ; f32 = j + k\n";  // vaddps
inline const std::string kWrongFormula =
    "isa avx2\nlf.add ; c5ec58cb ; ymm1,ymm2,ymm3 ; f32 = n == 3 ? j - k : j + k\n";
inline const std::string kWrongCode =
    "isa avx2\nlf.add ; c5ec5ccb ; ymm1,ymm2,ymm3 ; f32 = j + k\n";                    // vsubps
inline const std::string kIllegal = "isa avx2\nlf.bad ; 0f0b ; ymm1,ymm2 ; u8 = j\n";  // ud2
inline const std::string kFaulting =  // vmovups ymm1, [rax], which is null
    "isa avx2\nlf.null ; c5fc1008 ; ymm1,ymm2 ; u8 = j\n";
#else
inline constexpr kernels::Isa kHere = kernels::Isa::kLsx;
inline constexpr kernels::Isa kElsewhere = kernels::Isa::kAvx2;
inline const std::string kRight =
    "isa lsx\nlf.add ; 71308000 ; vd,vj,vk ; f32 = j + k\n";  // vfadd.s
inline const std::string kWrongFormula =
    "isa lsx\nlf.add ; 71308000 ; vd,vj,vk ; f32 = n == 3 ? j - k : j + k\n";
inline const std::string kWrongCode =
    "isa lsx\nlf.add ; 71328000 ; vd,vj,vk ; f32 = j + k\n";  // vfsub.s
inline const std::string kIllegal = "isa lsx\nlf.bad ; fffffc00 ; vd,vj ; u8 = j\n";
inline const std::string kFaulting =  // vld $vr1, $t1, 0: null
    "isa lsx\nlf.null ; 2c0001a1 ;  ; f.u8 = 0\n";
#endif

}  // namespace loongforge::isa_verify
