#!/usr/bin/env bash
# The speed table: products, attention and whole training steps beside the limits of this machine, measured in the same run.
# Usage: tests/bench/run.sh   (the steps need what scripts/quickstart.sh left)
# Build first (scripts/test.sh, or cmake --build --preset release). Results mean something on a quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
bench=build/release/bench
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
"$bench/gemm-bench"
"$bench/attention-bench"
tests/bench/step.sh
