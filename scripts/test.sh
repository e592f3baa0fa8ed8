#!/usr/bin/env bash
# Installs what is needed, builds and tests. Legs, each timed:
#   release   everything, in build/release
#   asan      AddressSanitizer and UBSan: labels unit and cmd, in build/asan
#   tsan      ThreadSanitizer: the thread pool, in build/tsan
#   loongarch everything for loong64, its tests under emulation, its files beside x86-64's (scripts/loongarch/test.sh; needs root)
#   fuzz      libFuzzer with AddressSanitizer and UBSan, a minute for each reader, in build/fuzz (needs clang-16)
# Usage: scripts/test.sh [release] [asan] [tsan] [loongarch] [fuzz]   (default: release)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
cd "$(dirname "$(readlink -f "$0")")/.."
jobs=$(nproc)
times=()
legs=("$@")
((${#legs[@]})) || legs=(release)
for name in "${legs[@]}"; do
  case $name in
    release | asan | tsan | loongarch | fuzz) ;;
    *)
      echo "test.sh: no leg is called '$name'; there are release, asan, tsan, loongarch and fuzz" >&2
      exit 2
      ;;
  esac
done

leg() {  # leg NAME COMMAND...: runs it, remembers its time
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$name $((SECONDS - start)) s")
}

build() {  # PRESET TARGET
  cmake --preset "$1" -DLF_BUILD_TESTS=ON "${launcher[@]}" >"build/$1.configure.log" 2>&1 || { cat "build/$1.configure.log"; return 1; }
  cmake --build --preset "$1" --target "$2" -j "$jobs"
}

run_ctest() {  # PRESET [CTEST ARGUMENT...]
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure --no-tests=error --timeout 1800 "$@"
}

leg "install" scripts/install_deps.sh build test
mkdir -p build
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # another clone's objects serve as well
fi
for name in "${legs[@]}"; do
  case $name in
    release)
      leg "shellcheck" shellcheck -x scripts/*.sh scripts/*/*.sh tests/bench/*.sh .ci/run
      leg "build release" build release all
      leg "test release" run_ctest release -LE slow
      ;;
    asan)
      leg "build asan" build asan lf_checked
      leg "test asan" run_ctest asan -L 'unit|cmd'
      ;;
    tsan)
      leg "build tsan" build tsan lf_test_pool
      leg "test tsan" build/tsan/tests/lf_test_pool
      ;;
    loongarch)
      leg "loongarch" scripts/loongarch/test.sh
      ;;
    fuzz)
      leg "install fuzz" scripts/install_deps.sh fuzz
      leg "build fuzz" build fuzz lf_fuzz
      leg "fuzz" scripts/fuzz.sh
      ;;
  esac
done
printf '== times\n'
printf '%s\n' "${times[@]}"
