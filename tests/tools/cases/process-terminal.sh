# A program on a terminal is saved with its process and continues on the terminal of the vgpuctl that resumes it; a program that has created
# its own terminal, as tmux does, goes on with that.
startNode a
startNode b
needCriu a
command -v script >/dev/null || skip "no script(1), which makes terminals"
[ -x "$tree/tests/programs/contents" ] || skip "no program contents"
# atTerminal COMMAND: runs it on a new terminal, whose input is held.in and whose output is appended to held.log.
atTerminal() {
  script -qefc "stty -echo -onlcr; exec $1" /dev/null <"$dir/held.in" >>"$dir/held.log" 2>&1 &
  runner[held]=$!
}
terminalOf() { readlink "/proc/$pid/fd/0"; }
mkfifo "$dir/held.in"
: >"$dir/held.log"
exec {input}<>"$dir/held.in"
commands[held]=$input
vgpuctl="'$tree/bin/vgpuctl' --node 'unix:$dir"
export LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-}
atTerminal "$vgpuctl/a/vgpud.sock' run --name held -- '$tree/tests/programs/contents' --serve random 4"
unset LD_PRELOAD
waitUntil says held ready
pid=$(field a held pid)
memoryIsRight held
first=$(terminalOf)
[[ $first = /dev/pts/* ]] || fail "the program is not at a terminal: $first"
succeeds ctl a suspend held --process --to "$dir/saved"
waitUntil ended "$pid"
code=0
wait "${runner[held]}" || code=$?
[ "$code" = 137 ] || fail "the first terminal returned $code"
# Another terminal has that number meanwhile. vgpuctl's progress messages would be mixed with the program's lines.
script -qc "sleep 1000" /dev/null <"/dev/null" >"$dir/other.log" 2>&1 &
atTerminal "$vgpuctl/b/vgpud.sock' resume --wait '$dir/saved' 2>/dev/null"
waitUntil hasState b held running
[[ $(terminalOf) = /dev/pts/* ]] || fail "the program is not at a terminal: $(terminalOf)"
memoryIsRight held
tell held change changed
memoryIsRight held
endContents held

# script(1) ends if a blocking system call returns EINTR, as it does after a restore.
cat >"$dir/script" <<'S'
#!/bin/bash
python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["/bin/sh", "-c", sys.argv[1]])))' \
  "stty -echo -onlcr; exec $1 --serve random 1" <"$2" >>"$3"
S
startScript a own "$dir/script"
pid=$(field a own pid)
terminal=$(terminalOf)
[[ $terminal = /dev/pts/* ]] || fail "the program is not at a terminal: $terminal"
succeeds ctl a suspend own --process --to "$dir/own"
waitUntil ended "$pid"
ctl b resume --wait "$dir/own" >"$dir/resume.log" 2>&1 &
runner[own]=$!
waitUntil hasState b own running
[ "$(terminalOf)" = "$terminal" ] || fail "the program is at $(terminalOf), not $terminal"
memoryIsRight own
endContents own
stopNode a
stopNode b
