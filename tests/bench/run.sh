#!/usr/bin/env bash
# The speed table: products, attention and whole training steps beside the limits of this machine, measured in the same run.
# Usage: tests/bench/run.sh   (the steps need what scripts/quickstart.sh left)
# One row in seconds: build/release/bench/gemm-bench --only 'fwd 4096 M=32' --isa avx2 --threads 1 --rounds 5
# The products stand beside oneDNN's and OpenBLAS's where scripts/install_deps.sh bench was run before configuring.
# Build first (scripts/test.sh, or cmake --build --preset release). Results mean something on a quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
bench=build/release/bench
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
"$bench/gemm-bench"
"$bench/sweep-bench"
"$bench/attention-bench"
tests/bench/step.sh
