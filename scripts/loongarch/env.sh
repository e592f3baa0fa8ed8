#!/usr/bin/env bash
# Makes, out of Debian's packages, what building and running loong64 programs needs on an x86-64 machine, unless it is there:
#   ENV/tools             a root of this machine's programs: the cross compiler, CMake, the user-mode emulator
#   ENV/tools/opt/loong64 a root of loong64 packages: libraries and headers to build with, and to run in
# and with --system, for system.sh:
#   ENV/system            a root of this machine's programs: the emulator of a whole LoongArch machine
#   ENV/system/opt/kernel Debian's loong64 kernel, and busybox
# The packages are unpacked and never configured, so nothing of loong64 runs meanwhile. DEBIAN_MIRROR names another mirror than
# mmdebstrap's own default. Needs root.
# Usage: scripts/loongarch/env.sh [--system]   (environment: $LOONGFORGE_LOONGARCH_ENV, else build/loongarch/env)
set -euo pipefail
[[ ${1:-} == -h || ${1:-} == --help ]] && exec sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
here=$(dirname "$(readlink -f "$0")")
env=${LOONGFORGE_LOONGARCH_ENV:-$here/../../build/loongarch/env}
if (($# > 1)) || [[ ${1:---system} != --system ]]; then
  echo "env.sh: '$*' is not understood; usage: scripts/loongarch/env.sh [--system]" >&2
  exit 2
fi
suite=forky  # the first Debian with loong64, and with an emulator that knows LSX and LASX

unpack() {  # ARCHITECTURE FOLDER PACKAGE...: a mirror may be a frozen copy, whose Release file has expired
  local architecture=$1 folder=$2 packages
  shift 2
  packages=$(IFS=,; echo "$*")
  mmdebstrap --quiet --mode=root --variant=extract --architectures="$architecture" --include="$packages" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
    "$suite" "$folder" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
  mkdir -p "$folder"/{proc,sys,dev,tmp,src,opt,root,etc}
  chmod 1777 "$folder/tmp"
  [[ -e $folder/etc/passwd ]] || echo 'root:x:0:0:root:/root:/bin/bash' >"$folder/etc/passwd"
  [[ -e $folder/etc/group ]] || echo 'root:x:0:' >"$folder/etc/group"
}

# An absolute link in a root that is no one's / must not lead out of it.
keep_links_inside() {
  local root=$1 link
  while IFS= read -r -d '' link; do
    ln -sfn "$(realpath -m --no-symlinks --relative-to="${link%/*}" "$root$(readlink "$link")")" "$link"
  done < <(find "$root" -xdev -type l -lname '/*' -print0)
}

# make_pair FOLDER INNER HOST LOONG: the packages HOST in ENV/FOLDER, LOONG in ENV/FOLDER/opt/INNER; again where the list changed
make_pair() {
  local folder=$env/$1 inner=$2 made="$suite $3 $4" part=$env/$1.part host loong first
  if [[ -f $folder/made && $(<"$folder/made") == "$made" ]]; then
    return
  fi
  if ((EUID != 0)); then
    echo "env.sh: making $folder needs root (it unpacks two Debian systems)" >&2
    exit 1
  fi
  "$here/../install_deps.sh" loongarch
  read -ra host <<<"$3"
  read -ra loong <<<"$4"
  rm -rf --one-file-system "$folder" "$part" "$part-$inner"
  mkdir -p "$env"
  unpack amd64 "$part" "${host[@]}" &
  first=$!
  unpack loong64 "$part-$inner" "${loong[@]}"
  wait "$first"
  keep_links_inside "$part-$inner"
  mv "$part-$inner" "$part/opt/$inner"
  echo "$made" >"$part/made"
  mv "$part" "$folder"
}

tools="base-files bash dash coreutils sed grep gawk findutils diffutils ca-certificates git ccache zsh fish
  g++-15-loongarch64-linux-gnu cmake ninja-build pkgconf qemu-user"
libraries="base-files bash dash coreutils libc6-dev libstdc++6"
# The libraries and headers are those of a native build: one list for both.
while read -r group package; do
  if [[ $group =~ ^(build|test)$ && $package == *-dev ]]; then
    libraries+=" $package"
  fi
done <"$here/../packages.txt"

if [[ ${1:-} == --system ]]; then
  # The kernel's package is named after its version: an apt pattern finds it.
  make_pair system kernel "base-files bash coreutils findutils gzip cpio qemu-system-misc qemu-efi-loongarch64" \
    "busybox-static ?name(^linux-binary-[0-9].*-loong64\$)"
else
  make_pair tools loong64 "${tools//$'\n'/ }" "$libraries"
fi
