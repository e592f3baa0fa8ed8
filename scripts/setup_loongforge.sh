#!/usr/bin/env bash
# Checks whether this machine is ready for LoongForge, and sets the environment of the shell that sources it.
#
#   source setup_loongforge.sh               check; export LOONGFORGE_HOME, PATH and LD_LIBRARY_PATH
#   setup_loongforge.sh [--quiet]            check only
#   setup_loongforge.sh --fix [--quiet]      check, and as root set the kernel's parameters and load lasx_kmod where there is one
#
# It works in bash and zsh. Sourced, it returns and never ends the shell, leaves the shell's options and functions as they
# were, and takes no arguments: a shell hands its own on to what it sources. Nothing of the system is changed without --fix;
# --fix writes what it sets, with what was there before, to /etc/sysctl.d/90-loongforge.conf. It does not touch the system's
# glibc: another one by LD_LIBRARY_PATH breaks the programs that use it. Nor vm.vfs_cache_pressure, which does not govern what
# training reads.
#
# Exit status: 0 ready, perhaps with warnings; 1 an error was printed; 2 wrong usage.
# LOONGFORGE_HOME: where the suite is, if set before. LOONGFORGE_SETUP_QUIET=1: as --quiet, also for a sourced script: warnings
# and errors only. LOONGFORGE_SYSROOT: a folder that stands for / in what is read and
# written here (/proc, /sys, /dev, /etc): for tests.

if [ -z "${BASH_VERSION:-}${ZSH_VERSION:-}" ]; then
  echo "setup_loongforge.sh: needs bash or zsh" >&2
  # shellcheck disable=SC2317  # the exit is for the case that this is not sourced
  return 2 2>/dev/null || exit 2
fi

lf_report() { # ok|note|warn LABEL TEXT
  if [ "$1" = ok ] || [ "$1" = note ]; then
    [ -n "$lf_quiet" ] || printf '%-5s %-11s %s\n' "$1" "$2" "$3"
  else
    printf '%-5s %-11s %s\n' "$1" "$2" "$3" >&2
  fi
}

lf_error() { # TEXT [CURE]
  printf 'Error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf '       %s\n' "$2" >&2
  lf_status=1
}

lf_first_line() { # FILE: its first line; nothing where it cannot be read
  local text=''  # at one stroke: a parameter of the kernel is at its end after the first byte that a shell reads
  text=$(command cat "$1" 2>/dev/null)
  printf '%s' "${text%%$'\n'*}"
}

lf_number() { # TEXT: the number at its start, or 0
  local digits="${1%%[!0-9]*}"
  printf '%s' "${digits:-0}"
}

lf_at_least() { # VERSION WANTED: by numbers, major.minor
  local major='' minor='' wanted_major='' wanted_minor=''
  major=$(lf_number "$1") wanted_major=$(lf_number "$2")
  minor=0 wanted_minor=0
  case $1 in *.*) minor=$(lf_number "${1#*.}") ;; esac
  case $2 in *.*) wanted_minor=$(lf_number "${2#*.}") ;; esac
  [ "$major" -gt "$wanted_major" ] || { [ "$major" -eq "$wanted_major" ] && [ "$minor" -ge "$wanted_minor" ]; }
}

lf_glibc_version() {
  local text='' line=''
  text=$(command getconf GNU_LIBC_VERSION 2>/dev/null) && { printf '%s' "${text##* }"; return; }
  if text=$(command ldd --version 2>/dev/null); then
    text=${text%%$'\n'*}
    printf '%s' "${text##* }"
    return
  fi
  # Neither is there on small systems: the library that this shell runs with tells it when run.
  while IFS= read -r line; do
    case $line in */libc.so.6 | */libc-2.*.so) text=/${line#*/} ; break ;; esac
  done <"$lf_root/proc/self/maps"
  [ -n "$text" ] && text=$("$text" 2>/dev/null)
  case $text in *'release version '*) text=${text#*release version } ; printf '%s' "${text%%.[!0-9]*}" ;; esac
}

# The newest version whose symbols the suite's binaries ask for, at least 2.34 (LoongArch: 2.36, where its port begins).
lf_glibc_needed() {
  local needed=2.34 file='' symbol=''
  [ "$lf_arch" != loongarch64 ] || needed=2.36
  for file in "$lf_home/bin/loongforge" "$lf_home/lib/libloongforge.so" "$lf_home/libcore/libloongforge.so"; do
    [ -r "$file" ] || continue
    while IFS= read -r symbol; do
      symbol=${symbol#GLIBC_}
      lf_at_least "$needed" "$symbol" || needed=$symbol
    done <<LIST
$(command grep -aoE 'GLIBC_2\.[0-9]+' "$file" 2>/dev/null)
LIST
  done
  printf '%s' "$needed"
}

lf_check_glibc() {
  local version='' needed=''
  version=$(lf_glibc_version)
  needed=$(lf_glibc_needed)
  if [ -z "$version" ]; then
    lf_error "no glibc found" "the suite needs glibc $needed or newer (another C library cannot run it)"
  elif ! lf_at_least "$version" 2.34; then
    lf_error "glibc < 2.34, please update" "it is $version; take a newer release of the system (LoongArch: 2.36, the \
\"new world\"), do not put another glibc into LD_LIBRARY_PATH"
  elif ! lf_at_least "$version" "$needed"; then
    lf_error "glibc < $needed, please update" "it is $version and this build asks for $needed; build the suite on this system"
  else
    lf_report ok glibc "$version (needed: $needed)"
  fi
}

lf_check_kernel() {
  local version=''
  version=$(lf_first_line "$lf_root/proc/sys/kernel/osrelease")
  [ -n "$version" ] || version=$(command uname -r)
  if [ "$lf_arch" = loongarch64 ] && ! lf_at_least "$version" 5.19; then
    lf_error "Linux $version is older than 5.19" "LoongArch programs of today (\"new world\") do not start there"
  else
    lf_report ok kernel "Linux $version, $lf_arch"
  fi
}

lf_hwcap() { # AT_HWCAP, as a number
  local tag='' value=''
  command od -An -v -t u8 -w16 "$lf_root/proc/self/auxv" 2>/dev/null | while read -r tag value; do
    if [ "$tag" = 16 ]; then
      printf '%s' "$value"
      break
    fi
  done
}

lf_module_exists() {
  command modprobe --dry-run --quiet lasx_kmod >/dev/null 2>&1
}

lf_check_loongarch() {
  local hwcap=''
  hwcap=$(lf_hwcap)
  if [ -z "$hwcap" ]; then
    lf_report warn LASX "/proc/self/auxv cannot be read: not known whether LSX and LASX are on"
    return
  fi
  if [ $((hwcap >> 5 & 1)) -eq 0 ] && lf_module_exists; then
    if [ -z "$lf_fix" ]; then
      lf_report note lasx_kmod "this system has the module; --fix loads it"
    elif command modprobe lasx_kmod; then
      lf_report ok lasx_kmod loaded
      hwcap=$(lf_hwcap)
    else
      lf_report warn lasx_kmod "cannot be loaded"
    fi
  fi
  if [ $((hwcap >> 5 & 1)) -eq 1 ]; then
    lf_report ok LASX "enabled (AT_HWCAP)"
    return
  fi
  lf_error "LASX not enabled in BIOS" \
    "switch it on: Advanced -> CPU Configuration -> LASX Support = Enabled; then it is in AT_HWCAP"
  if [ $((hwcap >> 4 & 1)) -eq 1 ]; then
    lf_report warn LASX "until then kernels run LSX, at about half the speed"
  else
    lf_report warn LASX "LSX is off as well: until then kernels run without vectors, at less than a third of the speed"
  fi
}

lf_check_x86() {
  local line='' flags='' found='scalar'
  while IFS= read -r line; do
    case $line in flags*) flags="${line#*:} " ; break ;; esac
  done 2>/dev/null <"$lf_root/proc/cpuinfo"
  case $flags in *' avx2 '*) case $flags in *' fma '*) found=AVX2 ;; esac ;; esac
  case $flags in *' avx512_bf16 '*) case $flags in *' avx512vbmi '*) found=AVX-512 ;; esac ;; esac
  if [ "$found" = scalar ]; then
    lf_report warn CPU "no AVX2 with FMA: kernels run without vectors"
  else
    lf_report ok CPU "$found (LASX is LoongArch's)"
  fi
}

# CXX may be a path with blanks, or a compiler with a launcher before it and options behind: what runs is asked.
lf_check_compiler() {
  local compiler="${CXX:-g++}" kind=GCC dump=-dumpfullversion version='' name=g++ gcc=12 clang=16 flag=-mavx512bf16
  if [ "$lf_arch" = loongarch64 ]; then
    gcc=14 clang=18 flag=-mlasx
  fi
  # shellcheck disable=SC2086  # split into words; lf_main sees to it in zsh
  if command -v "$compiler" >/dev/null 2>&1; then set -- "$compiler"; else set -- $compiler; fi
  local least=$gcc
  case $(command "$@" --version 2>/dev/null) in
  *clang*) kind=Clang dump=-dumpversion name=clang++ least=$clang ;;
  esac
  version=$(command "$@" "$dump" 2>/dev/null)
  if ! command -v "${1:-}" >/dev/null 2>&1; then
    lf_report note compiler "no ${1:-compiler}; only building the suite needs one"
  elif [ -z "$version" ]; then
    lf_report note compiler "$compiler does not run; only building the suite needs one"
  elif ! lf_at_least "$version" "$least"; then
    lf_report warn compiler "$compiler ($kind $version); building needs GCC $gcc or Clang $clang, or newer: CXX=$name-$least"
  elif ! command "$@" -std=c++20 "$flag" -x c++ -fsyntax-only /dev/null 2>/dev/null; then
    lf_report warn compiler "$compiler ($kind $version) does not compile with $flag, which building needs"
  else
    lf_report ok compiler "$compiler ($kind $version)"
  fi
}

# The file that --fix keeps: "# was VALUE" above each setting of its own. What was before the first --fix stays on record, and
# what others wrote there stays as well, but for other settings of the key: "key=1", "-key = 1" and "k/ey = 1" are some.
lf_write_down() { # KEY VALUE BEFORE
  local file="$lf_root/etc/sysctl.d/90-loongforge.conf" before=/dev/null made=''
  local title='# Written by setup_loongforge.sh --fix; "# was" above a setting says what it was before.'
  if [ -e "$file" ]; then
    [ -f "$file" ] || return 1  # a folder, or a link to /dev/null that switches it off
    before=$file
  fi
  made=$(command mktemp "$file.XXXXXX" 2>/dev/null) || return 1
  # shellcheck disable=SC2016  # awk's own syntax
  command awk -v key="$1" -v setting="$1 = $2" -v was="# was $3" -v title="$title" '
    { name = $0; sub(/[ \t]*=.*/, "", name); sub(/^[ \t]*-?[ \t]*/, "", name); gsub("/", ".", name) }
    /=/ && name == key { if (above != "") was = above; above = ""; next }
    above != "" { text = text above "\n"; above = "" }
    /^# Written by setup_loongforge.sh --fix/ { next }
    /^# was / { above = $0; next }
    { text = text $0 "\n" }
    END { print title; printf "%s", text; if (above != "") print above; print was; print setting }
  ' "$before" 2>/dev/null >|"$made" &&
    command chmod 644 "$made" 2>/dev/null && command mv -fT "$made" "$file" 2>/dev/null && return 0
  command rm -f "$made"
  return 1
}

lf_set_parameter() { # KEY VALUE BEFORE
  local file="$lf_root/proc/sys/${1//.//}"
  if ! { printf '%s\n' "$2" >|"$file"; } 2>/dev/null || [ "$(lf_first_line "$file")" != "$2" ]; then
    lf_error "$1 cannot be set to $2" "$file cannot be written here (a container?): set it on the host"
  elif ! lf_write_down "$1" "$2" "$3"; then
    lf_error "$1 is set to $2 until the next start only" "$lf_root/etc/sysctl.d/90-loongforge.conf cannot be written as a file: its folder is absent, read-only, or something else has the name"
  else
    lf_report ok "$1" "$2 (was $3; written to /etc/sysctl.d/90-loongforge.conf)"
  fi
}

lf_check_parameter() { # KEY VALUE most|least WHY
  local now=''
  now=$(lf_first_line "$lf_root/proc/sys/${1//.//}")
  if [ -z "$now" ]; then
    lf_report note "$1" "cannot be read here"
  elif { [ "$3" = most ] && [ "$now" -le "$2" ]; } || { [ "$3" = least ] && [ "$now" -ge "$2" ]; }; then
    lf_report ok "$1" "$now"
  elif [ -n "$lf_fix" ]; then
    lf_set_parameter "$1" "$2" "$now"
  else
    lf_report warn "$1" "$now; $2 is better: $4 (--fix sets it)"
  fi
}

lf_check_parameters() {
  local pressure=''
  lf_check_parameter vm.swappiness 1 most "weights that were swapped out are faulted in again"
  lf_check_parameter net.core.somaxconn 65535 least "many ranks connect at once"
  pressure=$(lf_first_line "$lf_root/proc/sys/vm/vfs_cache_pressure")
  if [ "$(lf_number "$pressure")" -gt 100 ]; then
    lf_report note vfs_cache "vm.vfs_cache_pressure is $pressure: no help to training, 100 is the kernel's own; left as it is"
  fi
}

lf_check_huge_pages() {
  local key='' value='' rest='' size='' total=0 free=0
  while read -r key value rest; do
    case $key in
    Hugepagesize:) size=$value ;;
    HugePages_Total:) total=$value ;;
    HugePages_Free:) free=$value ;;
    esac
  done 2>/dev/null <"$lf_root/proc/meminfo"
  if [ -z "$size" ]; then
    lf_report note "huge pages" "this kernel has none"
  elif [ "$total" -eq 0 ]; then
    lf_report note "huge pages" "none reserved ($((size / 1024)) MB each); models load faster from some: \
LOONGFORGE_HUGEPAGE_ENABLE=1 and vm.nr_hugepages = size of the model / $((size / 1024)) MB"
  else
    lf_report ok "huge pages" "$free of $total free, $((size / 1024)) MB each"
  fi
}

lf_check_shm() {
  local line='' blocks='' rest=''
  line=$(command df -Pk "$lf_root/dev/shm" 2>/dev/null)
  line=${line##*$'\n'}
  read -r rest blocks rest <<LINE
$line
LINE
  if [ "$(lf_number "$blocks")" -eq 0 ]; then
    lf_report warn /dev/shm "is not there: ranks of one machine need it"
  elif [ "$blocks" -lt 1048576 ]; then
    lf_report warn /dev/shm "$((blocks / 1024)) MB; ranks of one machine want 1 GB: mount -o remount,size=1G /dev/shm \
(docker: --shm-size 1g)"
  else
    lf_report ok /dev/shm "$((blocks / 1024)) MB"
  fi
}

lf_check_cpuset() {
  local controllers='' own='' line='' name='' hierarchy='' enabled='' allowed='' where=''
  controllers=" $(lf_first_line "$lf_root/sys/fs/cgroup/cgroup.controllers") "
  while IFS= read -r line; do
    case $line in 0::*) own=${line#0::} ;; esac
  done 2>/dev/null <"$lf_root/proc/self/cgroup"
  while read -r name hierarchy _ enabled; do
    if [ "$name" = cpuset ] && [ "$enabled" = 1 ] && [ "$hierarchy" != 0 ]; then where="v1 (hierarchy $hierarchy)"; fi
  done 2>/dev/null <"$lf_root/proc/cgroups"
  case $controllers in *' cpuset '*) where="v2" ;; esac
  while IFS= read -r line; do
    case $line in Cpus_allowed_list:*) allowed=${line#*:} ;; esac
  done 2>/dev/null <"$lf_root/proc/self/status"
  allowed=${allowed#[[:space:]]}
  if [ -z "$where" ]; then
    lf_report warn cpuset "no cgroup offers it, so CPUs and memory nodes are bound by affinity only (CPUs now: $allowed); \
v2: echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control; v1: boot with cgroup_enable=cpuset"
    return
  fi
  if [ "$where" = v2 ] && [ "$own" != / ] && [ -n "$own" ]; then
    case " $(lf_first_line "$lf_root/sys/fs/cgroup$own/cgroup.controllers") " in
    *' cpuset '*) ;;
    *) where="v2, not delegated to this group ($own)" ;;
    esac
  fi
  lf_report ok cpuset "cgroup $where; CPUs now: $allowed"
}

lf_prepend() { # FOLDER LIST: the list with the folder first, once; never a new empty element, which would mean "here"
  local rest="${2:+:$2:}"
  while :; do
    case $rest in *":$1:"*) rest="${rest%%":$1:"*}:${rest#*":$1:"}" ;; *) break ;; esac
  done
  printf '%s' "$1${rest%:}"
}

# The suite beside this script: installed (share/loongforge/ or scripts/ under it), or built in the source tree.
lf_find_home() { # FOLDER OF THIS SCRIPT
  local candidate=''
  for candidate in "$1/../.." "$1/.." "$1/../build/release"; do
    if [ -x "$candidate/bin/loongforge" ]; then
      (cd -P -- "$candidate" >/dev/null && pwd)
      return
    fi
  done
  printf '%s' /opt/loongforge
}

lf_check_suite() {
  local version=''
  if [ ! -x "$lf_home/bin/loongforge" ]; then
    lf_report warn loongforge "not found in $lf_home/bin; set LOONGFORGE_HOME to where it is"
  elif ! version=$("$lf_home/bin/loongforge" version 2>/dev/null); then
    lf_error "$lf_home/bin/loongforge does not run here" "run it by itself to see why"
  else
    lf_report ok loongforge "$version in $lf_home"
  fi
}

lf_main() { # sourced|run FOLDER ARGUMENTS...: sets lf_home
  [ -z "${ZSH_VERSION:-}" ] || emulate -L sh
  local IFS=$' \t\n'
  local lf_mode="$1" lf_quiet="${LOONGFORGE_SETUP_QUIET:-}" lf_fix='' lf_status=0 lf_arch='' lf_root="${LOONGFORGE_SYSROOT:-}"
  lf_home=${LOONGFORGE_HOME:-$(lf_find_home "$2")}
  while [ "${lf_home%/}" != "$lf_home" ] && [ "$lf_home" != / ]; do lf_home=${lf_home%/}; done
  case $lf_home in "" | /*) ;; *) lf_home=$PWD/$lf_home ;; esac
  shift 2
  while [ "$lf_mode" = run ] && [ $# -gt 0 ]; do
    case $1 in
    --fix) lf_fix=1 ;;
    --quiet) lf_quiet=1 ;;
    -h | --help)
      printf '%s\n' "usage: source setup_loongforge.sh" "       setup_loongforge.sh [--fix] [--quiet]"
      return 0
      ;;
    *)
      printf '%s\n' "setup_loongforge.sh: unknown argument '$1'; --fix, --quiet, --help" >&2
      return 2
      ;;
    esac
    shift
  done
  if [ -n "$lf_fix" ] && [ "$(command id -u)" != 0 ]; then
    printf '%s\n' "setup_loongforge.sh: --fix changes the system: run it as root (sudo)" >&2
    return 1
  fi
  lf_arch=$(command uname -m)
  lf_check_glibc
  lf_check_kernel
  case $lf_arch in
  loongarch64) lf_check_loongarch ;;
  x86_64) lf_check_x86 ;;
  *) lf_error "$lf_arch is neither loongarch64 nor x86_64" ;;
  esac
  lf_check_compiler
  lf_check_parameters
  lf_check_huge_pages
  lf_check_shm
  lf_check_cpuset
  lf_check_suite
  return "$lf_status"
}

lf_source=run
if [ -n "${ZSH_VERSION:-}" ]; then
  # shellcheck disable=SC2154  # zsh sets it
  case $ZSH_EVAL_CONTEXT in *:file*) lf_source=sourced ;; esac
  # shellcheck disable=SC2016  # zsh's own syntax, for zsh only
  eval 'lf_self=${(%):-%x}'
else
  if (return 0 2>/dev/null); then lf_source=sourced; fi
  lf_self=${BASH_SOURCE[0]}
fi
lf_self=$(command readlink -f -- "$lf_self")

lf_result=0
if [ "$lf_source" = sourced ]; then
  lf_main sourced "${lf_self%/*}" || lf_result=$?
  export LOONGFORGE_HOME="$lf_home"
  PATH=$(lf_prepend "$lf_home/bin" "${PATH:-}")
  LD_LIBRARY_PATH=$(lf_prepend "$lf_home/lib" "${LD_LIBRARY_PATH:-}")
  export PATH LD_LIBRARY_PATH
else
  lf_main run "${lf_self%/*}" "$@" || lf_result=$?
fi

unset -f lf_report lf_error lf_first_line lf_number lf_at_least lf_glibc_version lf_glibc_needed lf_check_glibc \
  lf_check_kernel lf_hwcap lf_module_exists lf_check_loongarch lf_check_x86 lf_check_compiler lf_write_down \
  lf_set_parameter lf_check_parameter lf_check_parameters lf_check_huge_pages lf_check_shm lf_check_cpuset lf_prepend \
  lf_find_home lf_check_suite lf_main
unset lf_source lf_self lf_home
# The number is put in before the variable goes; a run script may not return, so it exits.
eval "unset lf_result; return $lf_result 2>/dev/null || exit $lf_result"
