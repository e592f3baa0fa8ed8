#!/usr/bin/env bash
# Boots Debian's loong64 kernel on an emulated machine of 4 NUMA nodes with 4 cores each and runs the loong64 build in it
# (system_init.sh): what the user-mode emulator has not, such as huge pages of 32 MB, nodes and pages of 16 KB. The training run's
# files must hold the bytes that the x86-64 build writes for it. Makes what it needs where it is absent.
# Usage: scripts/loongarch/system.sh [--no-make]   (--no-make: exit code 77 where the environment or a build is absent,
#        or this is not root)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
if (($# > 1)) || [[ ${1:---no-make} != --no-make ]]; then
  echo "system.sh: '$*' is not understood; usage: scripts/loongarch/system.sh [--no-make]" >&2
  exit 2
fi
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.."
env=$(readlink -m "${LOONGFORGE_LOONGARCH_ENV:-build/loongarch/env}")
loong=build/loongarch/release
native=build/release
work=build/loongarch/system

if [[ ${1:-} == --no-make ]]; then
  for needed in "$env/tools/made" "$env/system/made" "$loong/bin/loongforge-train" "$loong/tests/lf_test_topo" \
    "$native/bin/loongforge-train"; do
    if [[ ! -e $needed ]]; then
      echo "SKIPPED: $needed is absent; scripts/loongarch/system.sh makes it"
      exit 77
    fi
  done
  if ((EUID != 0)); then
    echo "SKIPPED: entering $env needs root"
    exit 77
  fi
else
  scripts/loongarch/test.sh build
  scripts/loongarch/env.sh --system
  [[ -f $native/CMakeCache.txt ]] || cmake --preset release >/dev/null
  cmake --build "$native" --target loongforge-dispatcher loongforge-convert loongforge-train -j "$(nproc)"
fi

rm -rf "$work"
suite=$work/initramfs/suite
mkdir -p "$suite/bin" "$suite/tests" "$suite/lib" "$work/initramfs/bin" "$work/x86"

# The run on this side, by relative paths: they stand in what it writes.
cp scripts/quickstart/records.jsonl "$work/x86"
(
  bin=$PWD/$native/bin
  cd "$work/x86"
  "$bin/loongforge-convert" --input-path ../../../../scripts/quickstart/tiny_model --model-name tiny --device loongarch64 \
    --quantize fp8 --output-path model >convert.log
  "$bin/loongforge-train" --model_path model --output_dir run --dataset records.jsonl --cutoff_len 96 --max_samples 8 \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 2 --max_steps 3 --threads 4 >train.log 2>&1
)
cp -r "$work/x86/model" "$work/x86/records.jsonl" "$suite"

# Programs, and the libraries that the loader finds for them (its own line begins with the path that programs name).
programs=("$loong"/bin/loongforge "$loong"/bin/loongforge-{train,debug,convert} "$loong"/tests/lf_test_{topo,base})
for program in "${programs[@]}"; do
  cp -L "$program" "$suite/${program#"$loong"/}"
done
cp "$(readlink -f "$loong/libcore/libloongforge.so.0")" "$suite/lib/libloongforge.so.0"
while read -r library; do
  mkdir -p "$work/initramfs${library%/*}"
  cp -L "$env/tools/opt/loong64$library" "$work/initramfs$library"
done < <(
  for program in "${programs[@]}"; do
    scripts/loongarch/run.sh /opt/loong64/lib64/ld-linux-loongarch-lp64d.so.1 --list "/src/$program"
  done | awk '$1 ~ "^/" { print $1; next } $2 == "=>" { print $3 }' | grep -v '^/src/' | sort -u
)
cp "$env/system/opt/kernel/usr/bin/busybox" "$work/initramfs/bin"
ln -s busybox "$work/initramfs/bin/sh"
cp "$here/system_init.sh" "$work/initramfs/init"
chmod 755 "$work/initramfs/init"

nodes=()
for node in 0 1 2 3; do
  nodes+=(-object "memory-backend-ram,id=memory$node,size=768M"
    -numa "node,nodeid=$node,cpus=$((4 * node))-$((4 * node + 3)),memdev=memory$node")
done
# shellcheck disable=SC2016  # expanded by the shell inside
scripts/loongarch/run.sh --system bash -c '
  set -euo pipefail
  cd "/src/$1"
  shift
  (cd initramfs && find . | cpio --quiet -o -H newc | gzip -1) >initramfs.gz
  exec timeout 900 qemu-system-loongarch64 -M virt -cpu la464 -smp 16,sockets=4,cores=4,threads=1 -m 3G "$@" \
    -bios /usr/share/qemu-efi-loongarch64/QEMU_EFI.fd -kernel "$(find /opt/kernel -name vmlinuz)" -initrd initramfs.gz \
    -append "console=ttyS0 quiet panic=1" -nographic -no-reboot' _ "$work" "${nodes[@]}" </dev/null |
  sed -u -e 's/\r//g' -e '/PROGRESS CODE: V/d' | tee "$work/console.log" ||
  { echo "system.sh: the emulator failed or was stopped after 15 minutes" >&2; exit 1; }

failed=0
for check in kernel version isa isa-verify-lsx isa-verify-lasx nodes huge-page-size reserve huge-pages train; do
  if ! grep -qx "PASS $check" "$work/console.log"; then
    echo "system.sh: $check did not pass" >&2
    failed=1
  fi
done
has() {  # has NAME PATTERN: what the check's own exit code does not tell
  if ! grep -q "$2" "$work/console.log"; then
    echo "system.sh: $1: the console shows no '$2'" >&2
    failed=1
  fi
}
has kernel '^Linux .* loongarch64 GNU/Linux'
has version '"machine":"LoongArch64"'
has version '"isas_available":\["scalar"'
has isa-verify '^[0-9]* operations, [0-9,]* cases, 0 mismatches; all right'
has end '^END$'
sums() { (cd "$work/x86/run" && find . -type f ! -name .lock ! -name '*.log' | sort | xargs -d '\n' sha256sum); }
if ! diff <(sums) <(sed -n 's/^SUM //p' "$work/console.log"); then
  echo "system.sh: the training run wrote other bytes than on x86-64" >&2
  failed=1
fi
if ((failed)); then
  echo "system.sh: the console is in $work/console.log" >&2
  exit 1
fi
echo "system: all checks passed; $(sums | wc -l) files of the run have the bytes of x86-64"
