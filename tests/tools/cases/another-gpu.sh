# Sessions that are resumed on another GPU: of another architecture, a smaller one, one of several, one in the place of two.
export VGPU_STORE=$dir/store
VGPU_EMULATED=architecture=90,memory=2GiB startNode hopper
VGPU_EMULATED=architecture=80,memory=1GiB startNode ampere
VGPU_EMULATED=architecture=90,memory=64MiB startNode small
VGPU_EMULATED=devices=2 startNode two

startContents hopper one 24
succeeds ctl hopper suspend one
succeeds ctl ampere resume one
memoryIsRight one
tell one change changed
succeeds ctl ampere suspend one --to "$dir/second"
ctl ampere inspect "$dir/second" | finds "sm_90" || fail "the program's GPU is another one than it has seen"

# A session that is too large for the other GPU.
startContents hopper large 80
succeeds ctl hopper suspend large
refused "the program uses [0-9]* MiB of GPU memory, but GPU 0 here, .* has 64 MiB" ctl small resume large
hasState hopper large suspended || fail "after a resume that was refused it is $(field hopper large state)"
succeeds ctl hopper resume large
memoryIsRight large
endContents large

# The node's second GPU; a GPU that does not exist, and one that the program does not use.
refused "there is no GPU 2 here" ctl two resume "$dir/second" --device-map 0=2
refused "the program has 1 GPUs" ctl two resume "$dir/second" --device-map 0=1,1=0
refused "takes PROGRAM'S GPU=NODE'S GPU" ctl two resume "$dir/second" --device-map 0
succeeds ctl two resume "$dir/second" --device-map 0=1
memoryIsRight one
tell one change changed
succeeds ctl two suspend one --to "$dir/third"
succeeds ctl hopper resume "$dir/third"
memoryIsRight one
endContents one

# A program that sees two GPUs and uses one can be resumed on a node with one.
startContents two seer 8
succeeds ctl two suspend seer --to "$dir/seer"
succeeds ctl hopper resume "$dir/seer"
memoryIsRight seer
endContents seer

# A program that uses two GPUs can be resumed on a node with one, in the place of both. The numbers of textures and surfaces from both GPUs
# are then assigned on one.
startBoth() {
  rm -f "$dir/both.reached" "$dir/both.go"
  VGPU_PAUSE_FILE=$dir/both ctl two run --name both -- "$tree/tests/programs/$1" "${@:2}" >"$dir/both.log" 2>&1 &
  runner[both]=$!
  waitUntil test -e "$dir/both.reached"
  succeeds ctl two suspend both --name "$1"
}
goOn() {
  touch "$dir/both.go"
  wait "${runner[both]}" || fail "$1 returned $?"
  says both "$1: ok" || fail "$1 did not say that all is well"
}
startBoth peers
refused "the program uses 2 GPUs, and this node has 1: name with --device-map 1=N" ctl hopper resume peers
succeeds ctl hopper resume peers --device-map 0=0,1=0
goOn peers
startBoth random-history 7 200 1
refused "has the handle [0-9]* on this device, but the program knows it by" ctl hopper resume random-history --device-map 0=0,1=0
succeeds ctl two resume random-history
goOn random-history

# Green contexts with more multiprocessors than the other GPU has.
VGPU_EMULATED=architecture=75 startNode turing
VGPU_PAUSE_FILE=$dir/pause ctl hopper run --name green -- "$tree/tests/programs/green-contexts" >"$dir/green.log" 2>&1 &
runner[green]=$!
waitUntil test -e "$dir/pause.reached"
succeeds ctl hopper suspend green
refused "(of 32 multiprocessors) cannot be created again" ctl turing resume green
hasState hopper green suspended || fail "after a resume that was refused it is $(field hopper green state)"
succeeds ctl hopper resume green
touch "$dir/pause.go"
wait "${runner[green]}" || fail "green-contexts returned $?"
says green '^green-contexts: ok' || fail "green-contexts did not say that all is well"

# Persisting L2 cache, which the other GPU does not have.
rm -f "$dir/pause.reached" "$dir/pause.go"
VGPU_PAUSE_FILE=$dir/pause ctl hopper run --name hints -- "$tree/tests/programs/cache-hints" >"$dir/hints.log" 2>&1 &
runner[hints]=$!
waitUntil test -e "$dir/pause.reached"
succeeds ctl hopper suspend hints
succeeds ctl turing resume hints
touch "$dir/pause.go"
wait "${runner[hints]}" || fail "cache-hints returned $?"
says hints '^cache-hints: ok' || fail "cache-hints did not say that all is well"
for what in "L2 cache for data that stays" "a window of addresses in the L2 cache"; do
  says turing "allows 0 bytes of $what" || fail "node turing does not say how much it allows of $what"
done
