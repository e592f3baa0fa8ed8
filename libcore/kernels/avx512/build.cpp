// Tells isa.cpp whether these objects hold the CPU's instructions or the tests' emulation of them.
namespace loongforge::kernels::avx512 {

#ifdef LF_EMULATE_AVX512
extern const bool kEmulated = true;
#else
extern const bool kEmulated = false;
#endif

}  // namespace loongforge::kernels::avx512
