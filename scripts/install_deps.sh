#!/usr/bin/env bash
# Installs the Debian packages of the groups named (those of packages.txt: build, test, model, bench, fuzz, loongarch) that are
# not there yet. Without root it prints the apt line to run and stops.
#   scripts/install_deps.sh build test
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
list=$(dirname "$(readlink -f "$0")")/packages.txt

wanted=()
for group in "$@"; do
  found=0
  while read -r name package; do
    [[ $name == "$group" ]] || continue
    found=1
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || wanted+=("$package")
  done < <(grep -v '^#' "$list")
  if ((!found)); then
    echo "install_deps.sh: no group is called '$group' in $list" >&2
    exit 2
  fi
done
((${#wanted[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install_deps.sh: this is no Debian; install what these packages hold: ${wanted[*]}" >&2
  exit 1
fi
if ((EUID != 0)); then
  echo "install_deps.sh: packages are missing; run this and start again:" >&2
  echo "  sudo apt-get install -y --no-install-recommends ${wanted[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
echo "installed: ${wanted[*]}"
