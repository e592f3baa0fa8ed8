#!/usr/bin/env bash
# Whole training steps beside the peak of this machine, measured in the same run: LoRA and full fine-tuning of SmolLM2-135M and
# LoRA of a random model of Llama's shape with 1.1 billion parameters, at 4 x 512 tokens, with all threads and with one by turns.
# Usage: tests/bench/step.sh [--rounds N] [--isa LIST] [--only LIST] [--check]
#   --rounds  default: 3           --isa   of those that this CPU has; default: all but scalar
#   --only    of smol-lora, smol-full, llama-1b; default: all      --check  looks whether all is there that it needs, and ends
# Needs the build (LOONGFORGE_BUILD names another folder than build/release) and what scripts/quickstart.sh left; the other models
# are made in build/bench-models. Results mean something on a quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
usage="usage: tests/bench/step.sh [--rounds N] [--isa LIST] [--only LIST] [--check]"
# shellcheck source=tests/bench/common.sh
. tests/bench/common.sh
rounds=3
isas=()
cases=(smol-lora smol-full llama-1b)
check=0
while (($#)); do
  case $1 in
    -h | --help) echo "$usage"; exit 0 ;;
    --rounds) need_value "$@"; need_number "$1" "$2"; rounds=$2; shift 2 ;;
    --isa) need_value "$@"; IFS=, read -ra isas <<<"$2"; shift 2 ;;
    --only) need_value "$@"; IFS=, read -ra cases <<<"$2"; shift 2 ;;
    --check) check=1; shift ;;
    *) unknown "$1" ;;
  esac
done
build=${LOONGFORGE_BUILD:-build/release}
models=build/bench-models
quickstart=build/quickstart
loongforge=$build/bin/loongforge

gguf() { find "$quickstart/download" -name '*.gguf' 2>/dev/null | head -n 1; }

check_case() {  # CASE: whether it is one, and what it needs is there
  case $1 in
    smol-lora) [[ -d $quickstart/model.lir ]] || fail 66 "no $quickstart/model.lir; run scripts/quickstart.sh, which makes it" ;;
    smol-full)
      [[ -d $models/smollm2-bf16 || -n $(gguf) ]] ||
        fail 66 "no GGUF file in $quickstart/download; run scripts/quickstart.sh, which fetches it" ;;
    llama-1b) [[ -d $models/llama-1b ]] || need_programs "$build/tools/lf-random-model" ;;
    *) fail 2 "--only takes smol-lora, smol-full, llama-1b, not '$1'" ;;
  esac
}

make_model() {  # CASE: makes the model where it is absent; its folder is in model
  case $1 in
    smol-lora) model=$quickstart/model.lir ;;
    smol-full)
      model=$models/smollm2-bf16
      [[ -d $model ]] || attend "$loongforge" convert --input-path "$(gguf)" --output-path "$model" --quantize bf16 >&2 ;;
    llama-1b)
      model=$models/llama-1b
      [[ -d $model ]] || attend "$build/tools/lf-random-model" tests/bench/shapes/llama-1b "$model" bf16 >&2 ;;
  esac
}

need_programs "$build/bench/step-bench" "$loongforge" "$build/bin/loongforge-convert"
known=$("$loongforge" version --json | sed -n 's/.*"isas_available":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr , ' ')
read -ra available <<<"$known"
for isa in "${isas[@]}"; do
  [[ " ${available[*]} " == *" $isa "* ]] || fail 2 "--isa takes what this CPU has, ${available[*]}, not '$isa'"
done
if ((${#isas[@]} == 0)); then
  for isa in "${available[@]}"; do
    [[ $isa == scalar ]] || isas+=("$isa")
  done
  ((${#isas[@]})) || isas=(scalar)
fi
for name in "${cases[@]}"; do check_case "$name"; done
((check == 0)) || exit 0

mkdir -p "$models"
for isa in "${isas[@]}"; do
  for name in "${cases[@]}"; do
    make_model "$name"
    type=lora
    [[ $name == smol-full ]] && type=full
    attend "$build/bench/step-bench" "$model" --isa "$isa" --type "$type" --rounds "$rounds" --scaling
  done
done
