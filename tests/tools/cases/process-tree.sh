# A shell script that runs a CUDA program, with a pipe behind it and helper processes beside it, is saved as one tree, continues on the
# other node with the same process ids, and ends as it would have.
export VGPU_STORE=$dir/store
startNode a
startNode b
needCriu a

# The script's exit code shows that its children are its children again, and that the pipe has lost nothing.
cat >"$dir/script" <<'S'
#!/bin/bash
while :; do sleep 0.05; done &
helper=$!
sleep 1000 &
"$1" --serve random 4 <"$2" | sed -u 's/^//' >>"$3"
codes=${PIPESTATUS[*]}
kill "$helper" %2
wait
[ "$codes" = "0 0" ] && exit 7
S
startScript a held "$dir/script"
root=$(pgrep -f "$dir/script" -P "${runner[held]}") || fail "no script"
pid=$(pidOf held)
namesOf() { ps -o comm= --ppid "$root" | sort | tr '\n' ' '; }
before=$(namesOf)
memoryIsRight held

# Started by a child of the script: it cannot save itself.
cat >"$dir/inside" <<S
#!/bin/bash
"$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" suspend "\$1" --process --to "$dir/inside-1" 2>"$dir/inside.log"
echo "returned \$?" >>"$dir/inside.log"
S
startNested() {
  printf '#!/bin/bash\nbash "%s" nested &\n"$1" --serve random 1 <"$2" >>"$3"\nwait\n' "$dir/inside" >"$dir/nested-script"
  sed -i "2s|^|until grep -q ready \"$dir/nested.log\"; do sleep 0.05; done\n|" "$dir/inside"
  startScript a nested "$dir/nested-script"
  waitUntil says inside '^returned'
  says inside '^returned 1' || fail "a vgpuctl has saved itself: $(cat "$dir/inside.log")"
  says inside 'it is this vgpuctl itself: call it from outside of the program' || fail "it does not say why: $(cat "$dir/inside.log")"
  isGone "$dir/inside-1" || fail "something of a snapshot is left"
  memoryIsRight nested
  endContents nested
}
startNested

succeeds ctl a suspend held --process --to "$dir/first"
grep -q "[5-9] processes with [0-9]* threads, .*, have ended" "$dir/succeeds.log" || fail "the processes are not said: $(cat "$dir/succeeds.log")"
waitUntil ended "$root"
waitUntil ended "$pid"
code=0
wait "${runner[held]}" || code=$?
[ "$code" = 137 ] || fail "vgpuctl run returned $code, not that its program was killed"
ctl a inspect "$dir/first" | finds "^process    $root .*and [4-8] more" || fail "inspect does not show the tree"

# In the background, where a snapshot is made of the whole tree, which goes on.
succeeds ctl b resume "$dir/first"
[ "$(field b held pid)" = "$pid" ] || fail "the program has another process id"
[ "$(namesOf)" = "$before" ] || fail "the script has other children: $(namesOf), not $before"
memoryIsRight held
tell held change changed
succeeds ctl b snapshot held --process --name live
[ "$(namesOf)" = "$before" ] || fail "the script has other children after a snapshot: $(namesOf)"
for child in $(pgrep -P "$root"); do
  ! grep -q '^State:[[:space:]]*T' "/proc/$child/status" || fail "process $child is still stopped"
done
memoryIsRight held

# By the process id of the script, which has no session itself; to the store, and with a parent that gets the exit code.
refused "there is no session" ctl b suspend "pid:$root" --process --name stored
succeeds ctl b suspend held --process --name stored
succeeds ctl b snapshots verify stored
ctl a resume --wait stored >"$dir/resume.log" 2>&1 &
runner[held]=$!
waitUntil hasState a held running
memoryIsRight held
echo quit >&"${commands[held]}"
code=0
wait "${runner[held]}" || code=$?
[ "$code" = 7 ] || fail "the script returned $code: $(cat "$dir/resume.log")"
closeCommands held
stopNode a
stopNode b
