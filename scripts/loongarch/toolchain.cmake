# Cross-compiling for loong64 inside the environment that scripts/loongarch/env.sh makes: Debian's compiler beside a root of
# loong64 packages at /opt/loong64. Programs run by the user-mode emulator; the environment variable QEMU_CPU names the processor
# that it acts as.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR loongarch64)
set(lf_root /opt/loong64)
set(CMAKE_SYSROOT ${lf_root})
set(CMAKE_LIBRARY_ARCHITECTURE loongarch64-linux-gnu)
set(CMAKE_C_COMPILER loongarch64-linux-gnu-gcc-15)
set(CMAKE_CXX_COMPILER loongarch64-linux-gnu-g++-15)
set(CMAKE_FIND_ROOT_PATH ${lf_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${lf_root})
set(ENV{PKG_CONFIG_LIBDIR} ${lf_root}/usr/lib/loongarch64-linux-gnu/pkgconfig:${lf_root}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-loongarch64 -L ${lf_root})
