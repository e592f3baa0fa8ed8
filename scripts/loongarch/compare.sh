#!/usr/bin/env bash
# Converts and trains the same tiny models with the x86-64 build and with the loong64 build under emulation, with each set of
# kernels, and compares every file that they write, byte for byte: models, checkpoints (manifest, weights, optimizer), exports.
# Usage: scripts/loongarch/compare.sh   (needs build/release and build/loongarch/release; leaves build/loongarch/compare)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.."

# write_all BIN: all of it in the current folder. Paths stand in what is written, so they are the same on every side.
write_all() {
  local bin=$1 kind
  local data=../../../../scripts/quickstart
  convert() { "$bin/loongforge-convert" --input-path "$data/tiny_model" --model-name tiny --device loongarch64 "$@" >convert.log; }
  train() {
    "$bin/loongforge-train" --dataset "$data/records.jsonl" --cutoff_len 96 --max_samples 8 --per_device_train_batch_size 2 \
      --gradient_accumulation_steps 2 --learning_rate 2e-3 --warmup_ratio 0 --max_steps 3 --save_steps 2 --threads 2 "$@" \
      >>train.log 2>&1 || { cat train.log; return 1; }
  }
  for kind in fp8 bf16 nf4; do
    convert --output-path "model-$kind" --quantize "$kind"
  done
  train --model_path model-fp8 --output_dir lora --lora_dropout 0.1
  train --model_path model-fp8 --output_dir compute --fp8_activations compute --fp8_precision hybrid --moments fp8
  train --model_path model-bf16 --output_dir full --finetuning_type full --weight_decay 0.01
  train --model_path model-nf4 --output_dir qlora --finetuning_type qlora --fp8_precision bf16
  "$bin/loongforge-convert" --export peft --input-path model-fp8 --adapter lora/latest --output-path peft >>convert.log
  "$bin/loongforge-convert" --export hf --input-path model-fp8 --adapter lora/latest --merge --output-path merged >>convert.log
}

if [[ ${1:-} == --write ]]; then  # --write FOLDER BIN ISA: one side
  isa=$("$3/loongforge" version --json | sed 's/.*"isa_used":"\([a-z0-9]*\)".*/\1/')
  if [[ $isa != "$4" ]]; then
    echo "compare.sh: $3 uses $isa where $4 was to be compared" >&2
    exit 1
  fi
  mkdir -p "$2"
  cd "$2"
  write_all "$3"
  exit
fi

if (($#)); then
  echo "compare.sh: '$*' is not understood; usage: scripts/loongarch/compare.sh" >&2
  exit 2
fi
for needed in build/release/bin build/loongarch/release/bin; do
  for name in loongforge loongforge-convert loongforge-train; do
    [[ -x $needed/$name ]] && continue
    echo "compare.sh: $needed/$name is not built; scripts/loongarch/test.sh build compare builds it" >&2
    exit 1
  done
done

work=build/loongarch/compare
rm -rf "$work"
mkdir -p "$work"
isas_of() { grep -o '"isas_available":\[[^]]*' | sed 's/.*\[//; s/[",]/ /g'; }

sides=()
for isa in $(build/release/bin/loongforge version --json | isas_of); do
  LOONGFORGE_ISA=$isa scripts/loongarch/compare.sh --write "$work/x86-$isa" "$PWD/build/release/bin" "$isa"
  sides+=("x86-$isa")
done
for isa in $(scripts/loongarch/run.sh /src/build/loongarch/release/bin/loongforge version --json | isas_of); do
  cpu=la464
  [[ $isa == lasx ]] || cpu=la464,lasx=off
  QEMU_CPU=$cpu LOONGFORGE_ISA=$isa scripts/loongarch/run.sh /src/scripts/loongarch/compare.sh --write "/src/$work/loong-$isa" \
    /src/build/loongarch/release/bin "$isa"
  sides+=("loong-$isa")
done
if [[ ! " ${sides[*]} " =~ \ x86- || ! " ${sides[*]} " =~ \ loong- ]]; then
  echo "compare.sh: only ${sides[*]} ran" >&2
  exit 1
fi

first=${sides[0]}
names() { (cd "$work/$1" && find . \( -type f -o -type l \) ! -name '*.log' | sort); }
failed=0
for side in "${sides[@]:1}"; do
  if ! diff <(names "$first") <(names "$side"); then
    echo "compare.sh: $first and $side wrote other files" >&2
    failed=1
  fi
  while IFS= read -r name; do
    if [[ -L $work/$first/$name ]]; then
      [[ $(readlink "$work/$first/$name") == "$(readlink "$work/$side/$name")" ]]
    else
      cmp "$work/$first/$name" "$work/$side/$name"
    fi || failed=1
  done < <(names "$first")
done
count=$(names "$first" | wc -l)
# Four runs with two checkpoints of five files each at the least, three models, two exports.
if ((count < 50)); then
  echo "compare.sh: $count files are too few: something was not written" >&2
  failed=1
fi
if ((failed)); then
  exit 1
fi
echo "compare: $count files, the same bytes from ${sides[*]}"
