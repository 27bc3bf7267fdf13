# What the scripts share that start daemons and programs. All that one of them starts has its folder, $dir, in the environment.
# shellcheck shell=bash

# processesOfRun [NAME]: the process ids of what this script started, of those named NAME where one is given. One grep looks at all
# environments, because this runs in every test, and in loops.
processesOfRun() {
  local environment process comm
  for environment in $(grep -lszxF "VGPU_TEST_RUN=$dir" /proc/[0-9]*/environ); do
    process=${environment%/environ}
    { read -r comm <"$process/comm"; } 2>/dev/null || continue
    [ "$comm" = "${1:-$comm}" ] && echo "${process#/proc/}"
  done
}

alive() { kill -0 "$1" 2>/dev/null && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"; }

# Pipes that this script has inherited beside its standard streams, of make or of who started that: a program that has one cannot be saved
# with its process.
closeInheritedPipes() {
  local file
  for file in /proc/self/fd/*; do
    case ${file##*/}:$(readlink "$file") in
      [012]:*) ;;
      *:pipe:*) eval "exec ${file##*/}>&-" ;;
    esac
  done
}
closeInheritedPipes

PATH=/usr/bin:$PATH  # where Debian's python3 is: one behind a version manager takes ten times as long to start
