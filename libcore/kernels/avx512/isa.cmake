set(LF_ISA_MACHINES "x86_64|AMD64")
set(LF_ISA_COMPILERS "GCC 12 or newer, or Clang 16 or newer")
set(LF_ISA_FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512bf16
    -mprefer-vector-width=512)
