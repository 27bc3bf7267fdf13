# Peer devices use each other's managed memory. A program that does so is not resumed on GPUs that are not peers, and gets the reason; it
# can be resumed on one GPU in the place of both. Without managed memory it is resumed on any GPUs, and on these later requests for managed
# memory get pinned memory.
VGPU_EMULATED=devices=2 startNode peers
VGPU_EMULATED=devices=2,peers=0 startNode apart

# begin NAME [ARGUMENT]: runs managed-devices up to its pause point.
begin() {
  VGPU_PAUSE_FILE=$dir/$1 ctl peers run --name "$1" -- "$tree/tests/programs/managed-devices" "${@:2}" >"$dir/$1.log" 2>&1 &
  runner[$1]=$!
  waitUntil test -e "$dir/$1.reached"
}
goOn() {
  touch "$dir/$1.go"
  wait "${runner[$1]}" || fail "$1 returned $?"
  says "$1" '^managed-devices: ok' || fail "$1 did not say that all is well"
}

begin both
why="GPU [01] has managed memory that its GPU [01] accesses as a peer, but here GPU [01] here, .* cannot access the memory of GPU [01] here"
refused "$why" ctl peers migrate both --to "$dir/apart"
hasState peers both running || fail "after a migration that was refused it is $(field peers both state)"
succeeds ctl peers suspend both --to "$dir/both-saved"
refused "$why.*resume it on GPUs that are peers" ctl apart resume "$dir/both-saved"
succeeds ctl apart resume "$dir/both-saved" --device-map 0=1,1=1
goOn both

begin later later
succeeds ctl peers suspend later --to "$dir/later-saved"
succeeds ctl apart resume "$dir/later-saved"
goOn later
