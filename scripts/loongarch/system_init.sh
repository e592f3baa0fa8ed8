#!/bin/sh
# The first process of the machine that system.sh boots: runs the suite's programs on Debian's kernel, says of each check PASS or
# FAIL, prints the checksums of what the training run wrote, and switches the machine off. busybox is all there is beside them.
busybox=/bin/busybox
$busybox mkdir -p /proc /sys /dev /tmp
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sysfs /sys
$busybox mount -t devtmpfs devtmpfs /dev
$busybox mkdir -p /dev/shm
$busybox mount -t tmpfs tmpfs /dev/shm
$busybox --install -s /bin
export PATH=/suite/bin:/bin HOME=/tmp LD_LIBRARY_PATH=/suite/lib
cd /suite || exit 1

check() {  # check NAME COMMAND...
  name=$1
  shift
  echo "-- $name: $*"
  if "$@"; then
    echo "PASS $name"
  else
    echo "FAIL $name (exit code $?)"
  fi
}

# Of the table's lines those of operations that are not right, and the sum.
verify() {
  loongforge debug --isa-verify "$1" >/tmp/verify
  code=$?
  grep -v ' ok$' /tmp/verify
  return "$code"
}

nodes() {
  [ "$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)" -eq 4 ] &&
    tests/lf_test_topo -tc="machine: this one" | tee /tmp/topo && grep -q "NUMA nodes: 4 of 4" /tmp/topo
}

huge() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }
huge_page_size() { [ "$(huge Hugepagesize)" -eq 32768 ]; }
reserve() { echo 4 >/proc/sys/vm/nr_hugepages && [ "$(huge HugePages_Free)" -eq 4 ]; }

# Least free huge pages seen while the run lasts: it has to take one, and to give it back.
train_in_huge_pages() {
  LOONGFORGE_HUGEPAGE_ENABLE=1 loongforge train --model_path model --output_dir run --dataset records.jsonl \
    --cutoff_len 96 --max_samples 8 --per_device_train_batch_size 2 --gradient_accumulation_steps 2 --max_steps 3 --threads 4 \
    >/tmp/train.log 2>&1 &
  run=$!
  least=4
  while kill -0 "$run" 2>/dev/null; do
    free=$(huge HugePages_Free)
    if [ "$free" -lt "$least" ]; then least=$free; fi
    usleep 50000
  done
  wait "$run" || { cat /tmp/train.log; return 1; }
  cat /tmp/train.log
  echo "huge pages of $(huge Hugepagesize) kB: 4 free before, $least at the least while training, $(huge HugePages_Free) after"
  ! grep -q HUGEPAGE /tmp/train.log && [ "$least" -lt 4 ] && [ "$(huge HugePages_Free)" -eq 4 ]
}

check kernel uname -a
check version loongforge version --json
check isa loongforge debug --isa
check isa-verify-lsx verify lsx
check isa-verify-lasx verify lasx
check nodes nodes
check huge-page-size huge_page_size
check reserve reserve
check huge-pages tests/lf_test_base -tc="*huge pages*"
check train train_in_huge_pages
cd run && find . -type f ! -name .lock ! -name '*.log' | sort | while read -r file; do
  echo "SUM $(sha256sum "$file")"
done
echo "END"
poweroff -f
