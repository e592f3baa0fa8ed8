#!/usr/bin/env bash
# Runs a command in the environment that env.sh made, with the repository at /src, in a mount namespace of its own: nothing stays
# mounted. Programs for loong64 that the command starts run by the user-mode emulator (QEMU_CPU names its processor); for that
# the kernel is told once to start them so (binfmt_misc, "loongforge-loong64"). Needs root.
# Usage: scripts/loongarch/run.sh [--system] COMMAND [ARGUMENT...]   (environment: $LOONGFORGE_LOONGARCH_ENV, else
#        build/loongarch/env; --system: its root with the emulator of a whole machine)
set -euo pipefail
repository=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
env=$(readlink -m "${LOONGFORGE_LOONGARCH_ENV:-$repository/build/loongarch/env}")
root=$env/tools
if [[ ${1:-} == --system ]]; then
  root=$env/system
  shift
fi
if [[ ! -e $root/made ]]; then
  echo "run.sh: $root is not there; scripts/loongarch/env.sh makes it" >&2
  exit 1
fi
if ((EUID != 0)); then
  echo "run.sh: entering $root needs root" >&2
  exit 1
fi

kernel=/proc/sys/fs/binfmt_misc
mountpoint -q "$kernel" || mount -t binfmt_misc binfmt_misc "$kernel"
if [[ $root == */tools && ! -e $kernel/loongforge-loong64 ]]; then
  # ELF, 64 bits, little-endian, executable or shared object, machine 258. Flag F: the emulator is opened here and now, so that
  # its path need not be there after chroot.
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x02\x01'
  mask='\xff\xff\xff\xff\xff\xff\xff\xfc\x00\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ":loongforge-loong64:M::$magic:$mask:$root/usr/bin/qemu-loongarch64:OCF" >"$kernel/register"
fi

# shellcheck disable=SC2016  # expanded by the shell inside
exec env LF_ROOT="$root" LF_SOURCE="$repository" unshare --mount --propagation private bash -c '
  set -e
  mount --rbind /dev "$LF_ROOT/dev"
  mount --bind /sys "$LF_ROOT/sys"
  mount -t proc proc "$LF_ROOT/proc"
  mount --rbind "$LF_SOURCE" "$LF_ROOT/src"
  export QEMU_LD_PREFIX=/opt/loong64 HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
  unset LF_SOURCE TMPDIR
  exec chroot "$LF_ROOT" /usr/bin/env -u LF_ROOT "$@"' _ "$@"
