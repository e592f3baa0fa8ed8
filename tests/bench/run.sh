#!/usr/bin/env bash
# The speed table: products, attention and whole training steps beside the limits of this machine, measured in the same run.
# About an hour. Usage: tests/bench/run.sh [--rounds N] [--isa LIST]   (both are passed on to every benchmark; --isa avx2,avx512)
# One row in seconds: build/release/bench/gemm-bench --only 'fwd 4096 M=32' --isa avx2 --threads 1 --rounds 5
# The products stand beside oneDNN's and OpenBLAS's where scripts/install_deps.sh bench was run before configuring.
# Needs the build (cmake --build --preset release; LOONGFORGE_BUILD names another folder than build/release) and, for the steps,
# what scripts/quickstart.sh left: looked for before anything is measured. Results mean something on a quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
usage="usage: tests/bench/run.sh [--rounds N] [--isa LIST]"
# shellcheck source=tests/bench/common.sh
. tests/bench/common.sh
options=("$@")
while (($#)); do
  case $1 in
    -h | --help) echo "$usage"; exit 0 ;;
    --rounds | --isa) need_value "$@"; shift 2 ;;
    *) unknown "$1" ;;
  esac
done
bench=${LOONGFORGE_BUILD:-build/release}/bench
need_programs "$bench"/{gemm,sweep,attention}-bench
tests/bench/step.sh --check "${options[@]}"
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
attend "$bench/gemm-bench" "${options[@]}"
attend "$bench/sweep-bench" "${options[@]}"
attend "$bench/attention-bench" "${options[@]}"
attend tests/bench/step.sh "${options[@]}"
