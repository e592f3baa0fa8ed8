set(LF_ISA_MACHINES "x86_64|AMD64")
set(LF_ISA_COMPILERS "GCC 12 or newer, or Clang 16 or newer")
set(LF_ISA_FLAGS -mavx2 -mfma -mf16c)
