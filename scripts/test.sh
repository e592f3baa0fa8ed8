#!/usr/bin/env bash
# Installs what is needed, builds and tests. Legs, each timed:
#   release   everything, in build/release
#   asan      AddressSanitizer and UBSan: labels unit, isa and cmd, in build/asan
#   tsan      ThreadSanitizer: the thread pool and the kernels that it runs, in build/tsan
# Usage: scripts/test.sh [release] [asan] [tsan]   (default: release)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
jobs=$(nproc)
times=()

leg() {  # leg NAME COMMAND...: runs it, remembers its time
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$name $((SECONDS - start)) s")
}

configure_and_build() {  # PRESET [CMAKE ARGUMENT...]
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log"; return 1; }
  cmake --build --preset "$preset" -j "$jobs"
}

run_ctest() {  # PRESET [CTEST ARGUMENT...]
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 1200 "$@"
}

leg "install" scripts/install_deps.sh build test
mkdir -p build
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
legs=("$@")
((${#legs[@]})) || legs=(release)
for name in "${legs[@]}"; do
  case $name in
    release)
      leg "shellcheck" shellcheck scripts/*.sh .ci/run
      leg "build release" configure_and_build release -DLF_BUILD_TESTS=ON "${launcher[@]}"
      leg "test release" run_ctest release
      ;;
    asan)
      leg "build asan" configure_and_build asan "${launcher[@]}"
      leg "test asan" run_ctest asan -L 'unit|isa|cmd'
      ;;
    tsan)
      leg "build tsan" configure_and_build tsan "${launcher[@]}"
      leg "test tsan" run_ctest tsan -R '^(base|kernels|graph|train)$'
      ;;
    *)
      echo "test.sh: no leg is called '$name'; there are release, asan and tsan" >&2
      exit 2
      ;;
  esac
done
printf '== times\n'
printf '%s\n' "${times[@]}"
