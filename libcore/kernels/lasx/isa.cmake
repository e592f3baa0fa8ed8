set(LF_ISA_MACHINES "loongarch64|loong64")
set(LF_ISA_COMPILERS "GCC 14 or newer, or Clang 18 or newer")
# GCC's scheduling before register allocation loads so far ahead that the micro-kernels' sums lose their registers.
set(LF_ISA_FLAGS -mlasx $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
