# Shared by the cases in cases/: nodes, doubles and checks. A case is a bash script, run as
#
#   bash tests/tools/run-case TREE DOUBLE CASE
#
# TREE has bin/vgpud, bin/vgpuctl and lib/vgpu; DOUBLE is the session-double. A case fails at its first failed check, and prints all logs.
# All processes that it started end with it.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=../sanitizer-reports.sh
source "$(dirname "${BASH_SOURCE[0]}")/../sanitizer-reports.sh"
# shellcheck source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

limit=${VGPU_TIME_LIMIT:-30}  # seconds for each wait
dir=$(mktemp -d /tmp/vgpu-XXXXXX) || exit 1
export VGPU_TEST_RUN=$dir     # in the environment of every process that this case starts
export XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
unset VGPU_KEYS VGPU_NODES
sanitizersReportTo "$dir"
unset VGPU_NODE XDG_RUNTIME_DIR
declare -A daemon=() double=()

fail() {
  printf 'FAILED: %s\n' "$*"
  local log
  for log in "$dir"/*.log; do
    [ -s "$log" ] && { printf -- '--- %s\n' "$(basename "$log")"; tail -n 100 "$log"; }
  done
  exit 1
}

skip() { printf 'SKIPPED: %s\n' "$*"; exit 77; }

cleanUp() {
  local name pid
  trap - EXIT
  disown -a
  for pid in $(processesOfRun); do kill -KILL "$pid" 2>/dev/null; done
  awk -v below="$dir/" -v shared="/dev/shm/${dir##*/}/" 'index($2, below) == 1 || index($2, shared) == 1 { print $2 }' /proc/mounts |
    while read -r name; do umount -l "$name"; done
  removeGuestFolders
  rm -rf "$dir"
}
trap cleanUp EXIT
trap 'exit 130' INT TERM

ended() { ! alive "$1"; }

# stopProcess PID...: returns when all of them are stopped. After the signal alone, a thread that reads new input may still run.
stopProcess() {
  local pid
  kill -STOP "$@"
  for pid; do waitUntil stands "$pid"; done
}
# letGo PID...: continues processes that a fault point has stopped, or is about to stop. Waits for the stop first: a process logs the fault
# point before it stops itself, and a SIGCONT in between has no effect.
letGo() {
  local pid
  for pid; do waitUntil stands "$pid"; done
  kill -CONT "$@"
}
stands() { alive "$1" && [ -z "$(grep -Ls '^State:[[:space:]]*[Tt]' "/proc/$1/task"/*/status)" ]; }

# waitUntil COMMAND...: repeats COMMAND until it succeeds; the case fails if it does not in time.
waitUntil() { waitSeconds "$limit" "$@"; }
waitSeconds() {
  local seconds=$1 end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -le "$end" ] || fail "not true within $seconds s: $*"
    sleep 0.02
  done
}

says() { grep -qs -- "$2" "$dir/$1.log"; }
readyOrEnded() { says "$1" '^vgpud: ready' || ended "${daemon[$1]}"; }

# startNode NAME [OPTION...]: starts a daemon on $dir/NAME with one emulated device.
startNode() {
  local node=$1
  shift
  rm -f "$dir/$node.log"  # the log of an earlier node with this name
  "$tree/bin/vgpud" --run-dir "$dir/$node" --device emulated "$@" >"$dir/$node.log" 2>&1 &
  daemon[$node]=$!
  waitUntil readyOrEnded "$node"
  says "$node" '^vgpud: ready' || fail "vgpud $node did not become ready"
}

# stopNode NAME: ends it by SIGTERM; it must return 0.
stopNode() {
  kill -TERM "${daemon[$1]}" || fail "vgpud $1 had ended by itself"
  endsCleanly "$1"
}

# endsCleanly NAME: a daemon that was ended must return 0.
endsCleanly() {
  local code=0
  waitUntil ended "${daemon[$1]}"
  wait "${daemon[$1]}" || code=$?
  unset "daemon[$1]"
  [ "$code" = 0 ] || fail "vgpud $1 ended with code $code"
}

# killNode NAME: by SIGKILL. Waits for children that it has forked: they hold its sockets and locks until they execute their program.
killNode() {
  kill -KILL "${daemon[$1]}"
  waitUntil ended "${daemon[$1]}"
  waitUntil noneIsStarting
}
noneIsStarting() {
  local pid
  for pid in $(processesOfRun vgpud); do [[ " ${daemon[*]} " == *" $pid "* ]] || return 1; done
}

ctl() {
  local node=$1 seconds=$limit
  shift
  # `run` and --wait last as long as the program, which the case may need for longer than one wait.
  [[ $1 != run && " $* " != *" --wait "* ]] || seconds=$((5 * limit))
  # Under a sanitizer, programs need its runtime besides our libraries.
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} timeout "$seconds" "$tree/bin/vgpuctl" --node "unix:$dir/$node/vgpud.sock" "$@"
}

# commandsOf WORD: the process ids of the running vgpuctl commands that have this argument.
commandsOf() {
  local command
  for command in $(processesOfRun vgpuctl); do
    tr '\0' ' ' 2>/dev/null <"/proc/$command/cmdline" | grep -q -- " $1 " && echo "$command"
  done
}
# killCommands NODE WORD: by SIGKILL. On return the node has seen their connections end, because it has replied to a later one.
killCommands() {
  local command commands
  commands=$(commandsOf "$2")
  # shellcheck disable=SC2086
  kill -KILL $commands || fail "there is no vgpuctl $2"
  for command in $commands; do waitUntil ended "$command"; done
  succeeds ctl "$1" ps
}

# startDouble NODE NAME: starts a program with a session, with its output in NAME.log.
startDouble() {
  : >"$dir/$2.log"  # truncated, because an earlier double's log says `opened`
  VGPU_NODE=unix:$dir/$1/vgpud.sock "$doubleProgram" "$2" >"$dir/$2.log" 2>&1 &
  double[$2]=$!
  waitUntil openedOrEnded "$2"
  says "$2" '^opened' || fail "$2 got no session"
}
openedOrEnded() { says "$1" '^opened' || ended "${double[$1]}"; }

# runPaused NODE NAME PROGRAM: runs a CUDA program to its pause point, with its output in NAME.log. Its process id is in NAME.reached.
runPaused() {
  rm -f "$dir/$2.reached" "$dir/$2.go"
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_PAUSE_FILE=$dir/$2 "$tree/bin/vgpuctl" --node "unix:$dir/$1/vgpud.sock" run --name "$2" -- \
    "$3" >"$dir/$2.log" 2>&1 &
  runner[$2]=$!
  waitUntil test -e "$dir/$2.reached"
}
# finishes NAME: lets it run to its end; it must return 0.
finishes() {
  touch "$dir/$1.go"
  wait "${runner[$1]}" || fail "$1 returned $?"
}

# startRogue NODE NAME MODE ARGUMENT: starts a hostile peer (rogue.cc), with its output in NAME.log.
startRogue() {
  VGPU_NODE=$dir/$1 "$tree/tests/tools/rogue" "$3" "$4" >"$dir/$2.log" 2>&1 &
  double[$2]=$!
}

# hangFolder PATH: makes a folder below which every call hangs until the process $hung ends; skips the case if that is impossible.
hangFolder() {
  python3 "$(dirname "${BASH_SOURCE[0]}")/hung-folder" "$1" >"$dir/hung.log" 2>&1 &
  hung=$!
  waitUntil hangsOrEnded
  says hung '^hangs' || skip "no permission to mount a folder that hangs"
}
hangsOrEnded() { says hung '^hangs' || ended "$hung"; }

# field NODE SESSION KEY: prints a field of `ps --json`.
field() {
  ctl "$1" ps --json | python3 -c '
import json, sys
for s in json.load(sys.stdin):
    if sys.argv[1] in (s["name"], s["session"], str(s["pid"])): print(s[sys.argv[2]])' "$2" "$3"
}
hasState() { [ "$(field "$1" "$2" state)" = "$3" ]; }
lists() { [ -n "$(field "$1" "$2" session)" ]; }
listsNot() { ! lists "$1" "$2"; }

# resumeFromMemory NODE NAME: resumes it, and waits until the snapshot's name is free, a moment after the program runs.
resumeFromMemory() {
  succeeds ctl "$1" resume "$2"
  waitUntil isGone "$VGPU_STORE/snapshots/$2"
}

# suspendAtStandstill NODE NAME TARGET: begins to suspend NAME to $dir/TARGET, and stops its worker so that this does not
# end. `worker` and `suspend` are then the process ids of the worker and of the command.
suspendAtStandstill() {
  worker=$(field "$1" "$2" workerPid)
  stopProcess "$worker"
  ctl "$1" suspend "$2" --to "$dir/$3" >"$dir/suspend.log" 2>&1 &
  suspend=$!
  waitUntil hasState "$1" "$2" suspending
}

# refused PATTERN COMMAND...: COMMAND must return 1 and print PATTERN.
refused() {
  local pattern=$1 code=0
  shift
  "$@" >"$dir/refused.log" 2>&1 || code=$?
  [ "$code" = 1 ] || fail "returned $code instead of 1: $*"
  grep -q -- "$pattern" "$dir/refused.log" || fail "did not say '$pattern': $*"
}

succeeds() { "$@" >"$dir/succeeds.log" 2>&1 || fail "returned $?: $*"; }

# stillWorks NODE NAME: the session must run, and be suspended and resumed without a loss.
stillWorks() {
  hasState "$1" "$2" running || fail "$2 is $(field "$1" "$2" state) on $1, not running"
  succeeds ctl "$1" suspend "$2" --to "$dir/check-$RANDOM$RANDOM"
  succeeds ctl "$1" resume "$(field "$1" "$2" snapshot)"
  hasState "$1" "$2" running || fail "$2 does not run after suspend and resume"
}

# workersOn NODE: process ids of the workers that serve a session.
workersOn() { ctl "$1" ps --workers --json | python3 -c '
import json, sys
print(*[w["pid"] for w in json.load(sys.stdin) if w["session"]])'; }
# goesOnRefused NODE PROGRAM [COMMAND WHY]...: at the program's pause point each COMMAND of vgpuctl, in which PID stands for the program,
# must be refused with WHY and leave nothing in $dir/x; the program goes on.
goesOnRefused() {
  local node=$1 name=$2 runner pid
  shift 2
  [ -x "$tree/tests/programs/$name" ] || skip "no program $name"
  VGPU_PAUSE_FILE=$dir/pause ctl "$node" run -- "$tree/tests/programs/$name" >"$dir/$name.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  pid=$(cat "$dir/pause.reached")
  for ((; $# > 0; )); do
    refused "$2" ctl "$node" ${1//PID/$pid}
    waitUntil isGone "$dir/x"
    shift 2
  done
  hasState "$node" "$pid" running || fail "the program is $(field "$node" "$pid" state), not running"
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says "$name" "$name: ok" || fail "the program lost something"
}

# reported NAME KEY: prints a field of what `--json` has written to NAME.log.
reported() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2" <"$dir/$1.log"; }

# saysRounds NAME: requires that the output of `migrate --json` in NAME.log reports the rounds, how long the program was held, and why.
saysRounds() {
  python3 -c '
import json, sys
report = json.load(sys.stdin)
phases = [phase["name"] for phase in report["phases"]]
sys.exit(not (report["rounds"] >= 1 and report["roundBytes"] > 0 and report["blackoutSeconds"] > 0
              and phases[0] == "gate" and "capture" in phases and "target objects" in phases and phases[-1] == "take over"))' \
    <"$dir/$1.log" || fail "the report of the migration says nothing of rounds, or of what the program was held for"
}

# finds PATTERN: searches standard input. Unlike `grep -q` alone it reads all of it, so that the command that writes it does not fail
# (pipefail).
finds() {
  local all
  all=$(cat)
  grep -q -- "$1" <<<"$all"
}
isEmpty() { [ -z "$(ls -A "$1" 2>/dev/null)" ]; }
isGone() { [ ! -e "$1" ]; }

# startContents NODE NAME MIB: starts the program contents with random memory; its commands are written to descriptor ${commands[NAME]}, its
# process is ${runner[NAME]}, its output is in NAME.log. Skips the case if it was not built.
declare -A commands=() runner=()
startContents() { startFar "unix:$dir/$1/vgpud.sock" "${@:2}"; }
# startFar ADDRESS NAME MIB [PROGRAM]: the same on a node at that address; PROGRAM is a copy of contents.
startFar() {
  local program=${4:-$tree/tests/programs/contents} file
  [ -x "$program" ] || skip "no program contents"
  rm -f "$dir/$2.in"
  mkfifo "$dir/$2.in"
  : >"$dir/$2.log"  # truncated, because an earlier program's log says `ready`
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "$1" run --name "$2" -- "$program" --serve random "$3" \
    <"$dir/$2.in" >"$dir/$2.log" 2>&1 &
  runner[$2]=$!
  exec {file}>"$dir/$2.in"
  commands[$2]=$file
  waitUntil says "$2" ready
}
# startScript NODE NAME SCRIPT [ARGUMENT...]: like startContents, but starts a bash script that runs contents. Its arguments are the
# program, the named pipe for commands, the output file, and ARGUMENTs.
startScript() {
  local node=$1 name=$2 script=$3 program=$tree/tests/programs/contents file
  [ -x "$program" ] || skip "no program contents"
  rm -f "$dir/$name.in"
  mkfifo "$dir/$name.in"
  : >"$dir/$name.log"
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/$node/vgpud.sock" run --name "$name" -- /bin/bash "$script" \
    "$program" "$dir/$name.in" "$dir/$name.log" "${@:4}" <"/dev/null" >"$dir/$name-script.log" 2>&1 &
  runner[$name]=$!
  exec {file}<>"$dir/$name.in"
  commands[$name]=$file
  waitUntil says "$name" ready
}
# farMoves ADDRESS NAME: suspends such a program of node a, resumes it on node b, and moves it back the same way, using the address.
farMoves() {
  hasState a "$2" running || fail "the session is $(field a "$2" state)"
  at "$1" ps | finds "$2" || fail "ps does not list it over the network"
  memoryIsRight "$2"
  succeeds ctl a suspend "$2" --to "$dir/first"
  hasState a "$2" suspended || fail "the session is $(field a "$2" state), not suspended"
  succeeds ctl b resume "$dir/first"
  hasState b "$2" running || fail "the session does not run on the other node"
  memoryIsRight "$2"
  tell "$2" change changed
  succeeds ctl b suspend "$2" --to "$dir/second"
  succeeds at "$1" resume "$dir/second"
  memoryIsRight "$2"
}
# addressOf NODE: the address at which it listens for other hosts.
addressOf() { sed -n 's/^vgpud: listens on //p' "$dir/$1.log"; }
# The greeting's version in this build.
greetingVersion() {
  sed -n 's/^constexpr uint32_t greetingVersion = \([0-9]*\);/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../vgpu/control/greeting.h"
}
# noDefunct PID...: none of these has a child that has ended and was not reaped. State and parent follow the name, which may have blanks.
# A failure of cat is ignored (pipefail): any process of the machine may end after the shell has listed its folder.
noDefunct() {
  { cat /proc/[0-9]*/stat 2>/dev/null || true; } |
    awk -v of=" $* " '{ sub(/.*[)] /, ""); if ($1 == "Z" && index(of, " " $2 " ")) found = 1 }
    END { exit found }'
}
# Logs the remaining relays, for a wait that fails.
noRelays() {
  local relay
  for relay in $(processesOfRun vgpu-relay); do echo "$relay $(tr '\0' ' ' <"/proc/$relay/cmdline")"; done >"$dir/relays.log" 2>&1
  [ ! -s "$dir/relays.log" ] || return 1
  noDefunct "${daemon[@]}" || { echo "a node has not reaped a child" >"$dir/relays.log"; return 1; }
}
# at ADDRESS COMMAND...: vgpuctl with a node at that address.
at() {
  local address=$1
  shift
  timeout "$limit" "$tree/bin/vgpuctl" --node "$address" "$@"
}

# tell NAME WORD REPLY: sends the program a command and waits for its reply.
tell() {
  local already
  already=$(grep -c "^$3" "$dir/$1.log")
  echo "$2" >&"${commands[$1]}"
  waitUntil saysMore "$1" "$3" "$already"
}
saysMore() { [ "$(grep -c "^$2" "$dir/$1.log")" -gt "$3" ]; }
# memoryIsRight NAME: the program must read from its device memory what it wrote.
memoryIsRight() {
  tell "$1" verify "wrong "
  [ "$(grep '^wrong ' "$dir/$1.log" | tail -n 1)" = "wrong 0" ] || fail "the memory of $1 has changed"
}
# The same for a program that vgpuctl resume has restored in the background, whose exit code is lost.
endProgram() {
  local pid
  pid=$(pidOf "$1")
  echo quit >&"${commands[$1]}"
  waitUntil ended "$pid"
  closeCommands "$1"
}
pidOf() { sed -n 's/^ready //p' "$dir/$1.log" | tail -n 1; }
# needCriu NODE: skips the case if processes cannot be saved, which vgpuctl checks before it looks up the session.
needCriu() {
  ctl "$1" suspend name:none --process --to "$dir/none" >"$dir/criu.log" 2>&1
  ! grep -q CRIU "$dir/criu.log" || skip "$(cat "$dir/criu.log")"
}
# criuFile: path of the CRIU that vgpuctl uses.
criuFile() { echo "${VGPU_CRIU:-$(PATH=$(realpath "$tree/../..")/.deps/criu/bin:$PATH:/usr/local/sbin:/usr/sbin command -v criu)}"; }
endContents() {
  echo quit >&"${commands[$1]}"
  local code=0
  wait "${runner[$1]}" || code=$?
  [ "$code" = 0 ] || fail "$1 returned $code"
  closeCommands "$1"
}
closeCommands() {
  local file=${commands[$1]}
  exec {file}>&-
}
# storedBytes COMMAND...: prints its field storedBytes.
storedBytes() { "$@" --json 2>"$dir/stored.log" | python3 -c 'import json, sys; print(json.load(sys.stdin)["storedBytes"])'; }
