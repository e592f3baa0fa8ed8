#!/usr/bin/env bash
# The speed table: products, attention and whole training steps beside the limits of this machine, measured in the same run.
# Usage: tests/bench/run.sh [MODEL]   MODEL: a LoongIR folder for the steps (default: the quickstart's, where it was made)
# Build first (scripts/test.sh, or cmake --build --preset release). Results mean something on a quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
bench=build/release/bench
model=${1:-build/quickstart/model.lir}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
"$bench/gemm-bench"
"$bench/attention-bench"
if [[ -d $model ]]; then
  for isa in avx2 avx512; do
    LOONGFORGE_ISA=$isa build/release/bin/loongforge version >/dev/null 2>&1 || continue  # not on this CPU
    LOONGFORGE_ISA=$isa "$bench/step-bench" "$model"
  done
else
  echo "run.sh: no model at $model: the steps were not timed" >&2
fi
