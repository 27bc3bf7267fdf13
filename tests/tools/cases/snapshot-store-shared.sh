# Two daemons save to one store at the same time while it is collected, and a stopped suspend keeps the chunks that it relies on.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
startNode a
startNode b
startContents a one 16
startContents b two 16
freed() { ctl a snapshots gc --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["'"$1"'"])'; }
hit() { grep -qs "^$1 " "$dir/faults"; }

# Both programs have the same random memory.
ctl a suspend one >"$dir/suspend-one.log" 2>&1 & first=$!
ctl b suspend two >"$dir/suspend-two.log" 2>&1 & second=$!
for _ in 1 2 3; do succeeds ctl a snapshots gc; done
wait "$first" || fail "one was not suspended"
wait "$second" || fail "two was not suspended"
succeeds ctl a snapshots verify
succeeds ctl b resume one
succeeds ctl a resume two
memoryIsRight one
memoryIsRight two

# Two sessions of one name are suspended at once: each chooses a different snapshot name.
startContents a same 8
VGPU_NODE=unix:$dir/b/vgpud.sock "$doubleProgram" same >"$dir/other.log" 2>&1 & other=$!
waitUntil says other '^opened'
VGPU_FAULT_POINT=suspend.asked:stop ctl a suspend "name:same" >"$dir/first.log" 2>&1 & first=$!
stopped() { grep -qs '^suspend.asked [^ ]* [0-9]* stop$' "$dir/faults"; }
waitUntil stopped
succeeds ctl b suspend "name:same" --json
letGo "$(sed -n 's/^suspend.asked [^ ]* \([0-9]*\) stop$/\1/p' "$dir/faults")"
wait "$first" || fail "the first was not suspended: $(cat "$dir/first.log")"
for name in same same-2; do [ -e "$VGPU_STORE/snapshots/$name/manifest.json" ] || fail "there is no snapshot $name"; done
succeeds ctl a resume same
succeeds ctl b resume same-2
memoryIsRight same
endContents same
kill -TERM "$other"

# A name that is reserved for a suspend that has not begun survives a collection: its daemon is stopped before it takes the directory.
startContents b same 8
stopProcess "${daemon[b]}"
ctl b suspend "name:same" >"$dir/first.log" 2>&1 & first=$!
waitUntil test -d "$VGPU_STORE/snapshots/same-3"
succeeds ctl a snapshots gc
[ -d "$VGPU_STORE/snapshots/same-3" ] || fail "a collection has freed the name of a suspend in progress"
startContents a other 8
VGPU_NODE=unix:$dir/a/vgpud.sock "$doubleProgram" same >"$dir/second.log" 2>&1 & second=$!
waitUntil says second '^opened'
succeeds ctl a suspend "name:same"
[ -e "$VGPU_STORE/snapshots/same-4/manifest.json" ] || fail "there is no snapshot same-4: $(ls "$VGPU_STORE/snapshots")"
kill -CONT "${daemon[b]}"
wait "$first" || fail "the first was not suspended: $(cat "$dir/first.log")"
succeeds ctl b resume same-3
memoryIsRight same
endContents same
endContents other
kill -TERM "$second"

# The reserved name of a killed command is freed.
stopProcess "${daemon[b]}"
ctl b suspend nobody >"$dir/first.log" 2>&1 & first=$!
waitUntil test -d "$VGPU_STORE/snapshots/nobody"
kill -KILL "$(commandsOf nobody)"
waitUntil ended "$first"
kill -CONT "${daemon[b]}"
succeeds ctl a snapshots gc
isGone "$VGPU_STORE/snapshots/nobody" || fail "the name of a command that was killed is taken"

# A reserved name is released if no snapshot is made.
refused "no session\|No such session" ctl a suspend nobody
isGone "$VGPU_STORE/snapshots/nobody" || fail "the name of a snapshot that was not made is taken"

# The worker is stopped after it has written its packs: only its lease keeps them, and the existing chunks of `one` that it uses.
succeeds ctl b suspend one --name one-again
for name in one two; do succeeds ctl a snapshots rm --force "$name"; done
succeeds ctl a resume one-again
startNode c
VGPU_FAULT_POINT=suspend.packs-synced:stop startNode d
succeeds ctl a suspend two --name moved
succeeds ctl d resume moved
tell two change changed
rm "$dir/faults"
ctl d suspend two --name standing >"$dir/standing.log" 2>&1 & standing=$!
waitUntil hit suspend.packs-synced
for name in moved one-again; do succeeds ctl a snapshots rm --force "$name"; done
[ "$(freed leasedPacks)" -gt 0 ] || fail "a pack in use was looked at"
worker=$(grep '^suspend.packs-synced ' "$dir/faults" | cut -d' ' -f3)
letGo "$worker"
wait "$standing" || fail "a suspend beside a collection failed"
succeeds ctl c snapshots verify standing
succeeds ctl c resume standing
memoryIsRight two

# Chunks of a killed suspend are collected.
VGPU_FAULT_POINT=suspend.chunks-indexed:kill startNode e
succeeds ctl c suspend two --name last
succeeds ctl e resume last
tell two change changed
ctl e suspend two --name killed >"$dir/killed.log" 2>&1 && fail "a suspend whose worker was killed succeeded"
waitUntil isGone "$VGPU_STORE/snapshots/killed"
[ "$(freed chunks)" -gt 0 ] || fail "the chunks of a suspend that was killed are left"
succeeds ctl a snapshots verify
