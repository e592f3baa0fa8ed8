#!/usr/bin/env bash
# What can be tested of the LoongArch build without a LoongArch machine: builds everything for loong64 with warnings as errors and
# runs it under the user-mode emulator. Makes the environment for it where it is absent. Steps, each timed:
#   build     build/loongarch/release
#   lasx      the tests with LASX
#   lsx       the tests on a processor whose LASX is off
#   kernels   the kernels' bits beside x86-64's, and the instructions of a product (kernels.sh)
#   compare   what the x86-64 build and this one write has the same bytes (compare.sh)
#   setup     setup_loongforge.sh with LASX on and off (a case of lf_test_cmd, which skips it where the environment is absent)
# Usage: scripts/loongarch/test.sh [build] [lasx] [lsx] [kernels] [compare] [setup]   (default: all)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.."
jobs=$(nproc)
build=build/loongarch/release
times=()
steps=("$@")
((${#steps[@]})) || steps=(build lasx lsx kernels compare setup)
for name in "${steps[@]}"; do
  case $name in
    build | lasx | lsx | kernels | compare | setup) ;;
    *)
      echo "test.sh: no step is called '$name'; there are build, lasx, lsx, kernels, compare and setup" >&2
      exit 2
      ;;
  esac
done

step() {  # step NAME COMMAND...: runs it, remembers its time
  local name=$1 start=$SECONDS
  shift
  echo "== loongarch: $name"
  "$@"
  times+=("loongarch $name $((SECONDS - start)) s")
}

build_all() {
  mkdir -p build/loongarch
  scripts/loongarch/run.sh cmake -G Ninja -S /src -B "/src/$build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE=/src/scripts/loongarch/toolchain.cmake -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DLF_BUILD_TESTS=ON >build/loongarch/configure.log 2>&1 ||
    { cat build/loongarch/configure.log; return 1; }
  scripts/loongarch/run.sh cmake --build "/src/$build" -j "$jobs"
}

run_tests() {  # PROCESSOR [CTEST ARGUMENT...]
  local processor=$1
  shift
  QEMU_CPU=$processor scripts/loongarch/run.sh ctest --test-dir "/src/$build" --parallel "$jobs" --output-on-failure \
    --no-tests=error --timeout 1800 "$@"
}

build_native() {  # TARGET...
  if [[ ! -f build/release/CMakeCache.txt ]]; then
    cmake --preset release >/dev/null
  fi
  cmake --build build/release --target "$@" -j "$jobs"
}

kernels() {
  build_native lf-kernel-digest
  scripts/loongarch/kernels.sh
}

compare() {
  build_native loongforge-dispatcher loongforge-convert loongforge-train
  scripts/loongarch/compare.sh
}

setup() {
  local log=build/loongarch/setup.log
  mkdir -p "${log%/*}"
  build_native lf_test_cmd
  scripts/loongarch/run.sh true  # the kernel starts loong64 programs from here on
  build/release/tests/lf_test_cmd -tc="setup script: under emulation*" >"$log" 2>&1 || { cat "$log"; return 1; }
  cat "$log"
  if grep -q SKIPPED "$log" || ! grep -q "test cases: *1 | *1 passed" "$log"; then
    echo "test.sh: the setup script did not run under emulation" >&2
    return 1
  fi
}

step "environment" scripts/loongarch/env.sh
for name in "${steps[@]}"; do
  case $name in
    build) step "build" build_all ;;
    lasx) step "tests with LASX" run_tests la464 -L '^emulated$' ;;
    lsx) step "tests without LASX" run_tests la464,lasx=off -L '^emulated$' ;;
    kernels) step "kernels" kernels ;;
    compare) step "compare with x86-64" compare ;;
    setup) step "setup script" setup ;;
  esac
done
printf '%s\n' "${times[@]}"
