#!/usr/bin/env bash
# The kernels of the loong64 build, under the user-mode emulator:
#   digest   every family gives the same bits there, with LSX and with LASX, as with the x86-64 build's instruction sets
#   count    the instructions that an FP8 product executes in gemm's micro-kernels, by the emulator's log: at most 1.55 for a
#            vector multiply-add. A k step of a tile of six rows is 24 multiply-adds, 6 broadcasts and 4 loads with either set, so
#            the limit is one: what LSX lacks is width. The multiply-adds must be the product's number, and the micro-kernels
#            those of the library, instruction for instruction.
# Usage: scripts/loongarch/kernels.sh   (x86-64 build: $LF_X86_BUILD, else build/release; brings the tool of
#        build/loongarch/release up to date; exit 77: the environment or that build is absent, or this is not root)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
if (($#)); then
  echo "kernels.sh: '$*' is not understood; usage: scripts/loongarch/kernels.sh" >&2
  exit 2
fi
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.."
env=$(readlink -m "${LOONGFORGE_LOONGARCH_ENV:-build/loongarch/env}")
x86=${LF_X86_BUILD:-build/release}
loong=build/loongarch/release
work=build/loongarch/kernels
tool=tools/lf-kernel-digest
limit=1.55

for needed in "$env/tools/made" "$loong/build.ninja"; do
  if [[ ! -e $needed ]]; then
    echo "SKIPPED: $needed is absent; scripts/loongarch/test.sh build makes it"
    exit 77
  fi
done
if ((EUID != 0)); then
  echo "SKIPPED: entering $env needs root"
  exit 77
fi
run() { "$here/run.sh" "$@"; }
fail() { echo "kernels.sh: $*" >&2; exit 1; }
rm -rf "$work"
mkdir -p "$work"
run cmake --build "/src/$loong" --target lf-kernel-digest loongforge-dispatcher -j "$(nproc)" >"$work/build.log" 2>&1 ||
  { cat "$work/build.log"; fail "the loong64 build failed"; }

digests() {
  "$x86/$tool" >"$work/x86-64"
  QEMU_CPU=la464 run "/src/$loong/$tool" >"$work/lasx"
  QEMU_CPU=la464,lasx=off run "/src/$loong/$tool" >"$work/lsx"
  grep -q " lasx " "$work/lasx" || fail "LASX did not run"
  grep -q " lsx " "$work/lsx" || fail "LSX did not run"
  ! grep -q " lasx " "$work/lsx" || fail "LASX ran on a processor without it"
  local families different
  families=$(cut -d' ' -f1 "$work/x86-64" | sort -u | wc -l)
  different=$(cut -d' ' -f1,3 "$work/x86-64" "$work/lasx" "$work/lsx" | sort -u | wc -l)
  if ((different != families || families < 7)); then
    head -n 100 "$work/x86-64" "$work/lasx" "$work/lsx"
    fail "results differ"
  fi
  echo "digest: $families families, the same bits from $(cut -d' ' -f2 "$work/x86-64" "$work/lasx" | sort -u | xargs)"
}

# micro_kernels FILE ISA [NM OPTION...]: address, size, type and name of each
micro_kernels() {
  local file=$1 isa=$2
  shift 2
  run loongarch64-linux-gnu-nm -S "$@" "/src/$loong/$file" | awk -v isa="$isa" '
    BEGIN { mark = length(isa) isa "12_GLOBAL__N_1" }  # as g++ writes "isa::(anonymous namespace)"
    NF == 4 && $4 ~ /8mul_tileI/ && index($4, mark)'
}

# Machine code of the micro-kernels of an ISA in a file, without the addresses.
code() {
  local file=$1 isa=$2
  run loongarch64-linux-gnu-objdump -d --no-addresses "/src/$loong/$file" |
    awk -v isa="$isa" '
      BEGIN { mark = length(isa) isa "12_GLOBAL__N_1" }
      /^<.*>:$/ && !/^<\.L/ && !/\^/ { inside = /8mul_tileI/ && index($0, mark) }  # not a label within a function
      inside'
}

# count ISA LANES: of the product that the tool makes, 96 x 64 x 1024
count() {
  local isa=$1 products=$((96 * 64 * 1024 / $2)) ranges
  code "$tool" "$isa" >"$work/$isa.tool"
  code libcore/libloongforge.so "$isa" >"$work/$isa.library"
  grep -q 'fmadd\.s' "$work/$isa.tool" || fail "$isa: the disassembly shows no multiply-add"
  cmp "$work/$isa.tool" "$work/$isa.library" || fail "$isa: the library's micro-kernels are others than the tool's"
  ranges=$(micro_kernels "$tool" "$isa" | awk '{ printf "%s0x%s+0x%s", (NR > 1 ? "," : ""), $1, $2 }')
  run qemu-loongarch64 -cpu la464 -d in_asm,exec,nochain -dfilter "$ranges" -D "/src/$work/$isa.log" "/src/$loong/$tool" \
    --gemm "$isa" >/dev/null
  # The log has blocks as they were translated (IN:, one instruction a line) and how often each was executed (Trace).
  awk -v isa="$isa" -v products="$products" -v limit="$limit" '
    /^IN:/ { block = ""; next }
    /^0x[0-9a-f]+: / {
      at = $1; sub(/^0x0*/, "", at); sub(/:$/, "", at)
      if (block == "") { block = at; length_of[block] = 0 }
      text[block, ++length_of[block]] = $0
      next
    }
    /^Trace / {
      match($0, /\[[0-9a-f]+\/[0-9a-f]+/)
      split(substr($0, RSTART + 1, RLENGTH - 1), part, "/")
      at = part[2]; sub(/^0*/, "", at); runs[at]++
    }
    END {
      for (b in runs) {
        if (!(b in length_of)) { printf "kernels.sh: %s: block %s ran unseen\n", isa, b > "/dev/stderr"; exit 1 }
        for (i = 1; i <= length_of[b]; i++) {
          total += runs[b]
          if (text[b, i] ~ /fmadd_s[ \t]/) multiply += runs[b]
          if (text[b, i] ~ /[ \t]x?v(ld|st).*, r3,/) stack += runs[b]
        }
      }
      if (multiply != products) {
        printf "kernels.sh: %s: %d multiply-adds where the product has %d\n", isa, multiply, products > "/dev/stderr"
        exit 1
      }
      each = total / multiply
      printf "count: %s: %d instructions for %d vector multiply-adds, %.3f each; %d vectors on the stack\n", isa, total, multiply,
        each, stack
      if (each > limit) { printf "kernels.sh: %s: more than %s\n", isa, limit > "/dev/stderr"; exit 1 }
      if (stack > 0) { printf "kernels.sh: %s: sums or factors stand on the stack\n", isa > "/dev/stderr"; exit 1 }
    }' "$work/$isa.log"
}

digests
count lsx 4
count lasx 8
