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

# guestFolder NAME: makes a folder for what a virtual machine shares with its host, in memory: what processes share in a file of a disk
# waits for that disk. removeGuestFolders removes all that this script made.
guestFolder() { mkdir -p "/dev/shm/${dir##*/}/$1" && echo "/dev/shm/${dir##*/}/$1"; }
removeGuestFolders() { rm -rf "/dev/shm/${dir##*/}"; }

alive() { grep -qs '^State:[[:space:]]*[^[:space:]ZX]' "/proc/$1/status"; }  # one look: one that has ended may be reaped before another

# What this script has inherited beside its standard streams, of make or of who started that: a program that has half of a pipe, or a
# file from outside of its mount namespace, cannot be saved with its process.
closeInherited() {
  local file
  for file in /proc/self/fdinfo/*; do
    local number=${file##*/} name value flags=02000000
    while read -r name value; do [ "$name" != flags: ] || flags=$value; done 2>/dev/null <"$file"
    ((number <= 2 || flags & 02000000)) || eval "exec $number>&-"  # O_CLOEXEC: the shell's own
  done
}
closeInherited

PATH=/usr/bin:$PATH  # where Debian's python3 is: one behind a version manager takes ten times as long to start
