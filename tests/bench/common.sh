# shellcheck shell=bash
# Sourced by the scripts of this folder, which set usage.

fail() {  # CODE TEXT: ends the script with one line
  echo "$(basename "$0"): $2" >&2
  exit "$1"
}

unknown() { fail 2 "unknown argument $1; ${usage:?}"; }

need_value() {  # the words that are left, an option first
  [[ -n ${2:-} ]] || fail 2 "$1 takes a value; ${usage:?}"
}

need_number() {  # OPTION VALUE
  [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || fail 2 "$1 takes a whole number above 0, not '$2'"
}

need_programs() {
  local program
  for program in "$@"; do
    [[ -x $program ]] || fail 66 "no $program; build first: cmake --preset release && cmake --build --preset release"
  done
}

# Runs a command to its end. A signal to the script is passed on to the command, as SIGTERM; when the command has ended, the
# script ends with 128 and the signal's number.
attend() {
  local child=0 status=0 stopped=0
  trap 'stopped=129; ((child == 0)) || kill -TERM "$child" 2>/dev/null || true' HUP
  trap 'stopped=130; ((child == 0)) || kill -TERM "$child" 2>/dev/null || true' INT
  trap 'stopped=143; ((child == 0)) || kill -TERM "$child" 2>/dev/null || true' TERM
  "$@" &
  child=$!
  ((stopped == 0)) || kill -TERM "$child" 2>/dev/null || true
  wait "$child" || status=$?
  if ((stopped)); then
    wait "$child" 2>/dev/null || true  # the signal ended the first one early
    exit "$stopped"
  fi
  trap - HUP INT TERM
  return "$status"
}
