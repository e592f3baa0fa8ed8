#!/usr/bin/env bash
# Runs the fuzz targets of build/fuzz (scripts/test.sh fuzz builds them), two at a time. A finding is left in
# build/fuzz/findings/<target>/ and the script fails; new inputs are kept in build/fuzz/corpus/<target>/. The same seed on the
# same corpus takes the same way; --seed 0 draws one.
# Usage: scripts/fuzz.sh [--seconds N | --runs N] [--seed N] [target...]   (default: 60 seconds, seed 1, all targets)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
cd "$(dirname "$(readlink -f "$0")")/.."
limit=-max_total_time=60
seed=1
names=()
while (($#)); do
  case $1 in
    --seconds) limit=-max_total_time=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --runs) limit=-runs=$2; shift 2 ;;
    -*) echo "fuzz.sh: unknown option $1; usage: scripts/fuzz.sh [--seconds N | --runs N] [--seed N] [target...]" >&2; exit 2 ;;
    *) names+=("$1"); shift ;;
  esac
done
if ((${#names[@]} == 0)); then
  for source in tests/fuzz/fuzz_*.cpp; do
    name=$(basename "$source" .cpp)
    names+=("${name#fuzz_}")
  done
fi

run_one() {  # NAME: one target; its log in build/fuzz/logs
  local name=$1 program=build/fuzz/fuzz/fuzz-${1//_/-} seeds=tests/data/fuzz/$1 dictionary=()
  [[ -x $program ]] || { echo "fuzz.sh: $program is not built; run scripts/test.sh fuzz" >&2; return 1; }
  [[ -d $seeds ]] || { echo "fuzz.sh: $name has no seeds in $seeds" >&2; return 1; }
  [[ -f tests/fuzz/$name.dict ]] && dictionary=(-dict="tests/fuzz/$name.dict")
  mkdir -p "build/fuzz/corpus/$name" "build/fuzz/findings/$name" build/fuzz/logs
  "$program" "$limit" "-seed=$seed" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$name/" "${dictionary[@]}" "build/fuzz/corpus/$name" "$seeds" \
    >"build/fuzz/logs/$name" 2>&1
}

failed=0
report() {  # PID NAME: waits for it
  local status=0
  wait "$1" || status=$?
  local cases
  cases=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/logs/$2" 2>/dev/null || true)
  if ((status == 0)) && [[ -n $cases ]]; then
    echo "fuzz $2: $cases cases, no finding"
  else
    failed=1
    echo "fuzz $2: FAILED, exit $status"
    tail -n 40 "build/fuzz/logs/$2" 2>/dev/null || true
  fi
}

pids=() running=()
for name in "${names[@]}"; do
  if ((${#pids[@]} == 2)); then
    report "${pids[0]}" "${running[0]}"
    pids=("${pids[@]:1}") running=("${running[@]:1}")
  fi
  run_one "$name" &
  pids+=($!) running+=("$name")
done
for i in "${!pids[@]}"; do report "${pids[$i]}" "${running[$i]}"; done
exit "$failed"
