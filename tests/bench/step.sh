#!/usr/bin/env bash
# Whole training steps beside the peak of this machine, measured in the same run: LoRA and full fine-tuning of SmolLM2-135M and
# LoRA of a random model of Llama's shape with 1.1 billion parameters, at 4 x 512 tokens, with all threads and with one by turns.
# Usage: tests/bench/step.sh [--rounds N] [--isa avx2,avx512,...] [--only smol-lora,smol-full,llama-1b]   (default: 3 rounds, everything)
# Needs the quickstart's model (scripts/quickstart.sh); the others are made in build/bench-models. Results mean something on a
# quiet machine only.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
rounds=3
isas=(avx2 avx512 lsx lasx)
cases=(smol-lora smol-full llama-1b)
while (($#)); do
  case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --isa) IFS=, read -ra isas <<<"$2"; shift 2 ;;
    --only) IFS=, read -ra cases <<<"$2"; shift 2 ;;
    *) echo "step.sh: unknown option $1; usage: tests/bench/step.sh [--rounds N] [--isa LIST] [--only LIST]" >&2; exit 2 ;;
  esac
done
build=build/release
models=build/bench-models
quickstart=build/quickstart
loongforge=$build/bin/loongforge

model_of() {  # CASE: makes the model where it is absent; prints its folder, or fails with a line
  case $1 in
    smol-lora)
      [[ -d $quickstart/model.lir ]] || { echo "step.sh: no $quickstart/model.lir; run scripts/quickstart.sh" >&2; return 1; }
      echo "$quickstart/model.lir" ;;
    smol-full)
      local file
      file=$(find "$quickstart/download" -name '*.gguf' 2>/dev/null | head -n 1)
      [[ -n $file ]] || { echo "step.sh: no GGUF file in $quickstart/download; run scripts/quickstart.sh" >&2; return 1; }
      [[ -d $models/smollm2-bf16 ]] ||
        "$loongforge" convert --input-path "$file" --output-path "$models/smollm2-bf16" --quantize bf16 >&2
      echo "$models/smollm2-bf16" ;;
    llama-1b)
      [[ -d $models/llama-1b ]] || "$build/tools/lf-random-model" tests/bench/shapes/llama-1b "$models/llama-1b" bf16 >&2
      echo "$models/llama-1b" ;;
    *) echo "step.sh: $1 is none of smol-lora, smol-full, llama-1b" >&2; return 1 ;;
  esac
}

mkdir -p "$models"
ran=0
for isa in "${isas[@]}"; do
  for name in "${cases[@]}"; do
    model=$(model_of "$name")
    type=lora
    [[ $name == smol-full ]] && type=full
    status=0
    LOONGFORGE_ISA=$isa "$build/bench/step-bench" "$model" --type "$type" --rounds "$rounds" --scaling || status=$?
    ((status == 3)) && continue 2  # not on this CPU
    ((status == 0)) || exit "$status"
    ran=1
  done
done
((ran)) || { echo "step.sh: none of ${isas[*]} is on this CPU" >&2; exit 1; }
