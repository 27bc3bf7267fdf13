# Shared by the scripts that start daemons and programs. All processes that a script starts have its folder, $dir, in their environment.
# shellcheck shell=bash

# processesOfRun [NAME]: process ids of everything that this script started; with NAME only of processes with that name. One grep searches
# all environments, because every test calls this, some in loops.
processesOfRun() {
  local environment process comm
  for environment in $(grep -lszxF "VGPU_TEST_RUN=$dir" /proc/[0-9]*/environ); do
    process=${environment%/environ}
    { read -r comm <"$process/comm"; } 2>/dev/null || continue
    [ "$comm" = "${1:-$comm}" ] && echo "${process#/proc/}"
  done
}

# guestFolder NAME: makes a folder for files that a virtual machine shares with its host. It is in /dev/shm, because processes that share a
# file on disk wait for that disk. removeGuestFolders removes all of them that this script made.
guestFolder() { mkdir -p "/dev/shm/${dir##*/}/$1" && echo "/dev/shm/${dir##*/}/$1"; }
removeGuestFolders() { rm -rf "/dev/shm/${dir##*/}"; }

alive() { grep -qs '^State:[[:space:]]*[^[:space:]ZX]' "/proc/$1/status"; }  # reads once: the process may be reaped between two reads

# closeInherited: closes the descriptors that this script inherited from make or its caller, except the standard streams: a program that
# holds one end of a pipe, or a file from outside of its mount namespace, cannot be saved with its process.
closeInherited() {
  local file
  for file in /proc/self/fdinfo/*; do
    local number=${file##*/} name value flags=02000000
    while read -r name value; do [ "$name" != flags: ] || flags=$value; done 2>/dev/null <"$file"
    ((number <= 2 || flags & 02000000)) || eval "exec $number>&-"  # O_CLOEXEC: one of the shell's own
  done
}
closeInherited

PATH=/usr/bin:$PATH  # for Debian's python3: one behind a version manager takes ten times as long to start
