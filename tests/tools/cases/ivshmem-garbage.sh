# A machine that writes anything anywhere into the memory that it shares with its host ends its own sessions; another machine's, and the
# host, go on, and when it stops it is served again. VGPU_SEED repeats a run.
one=$(guestFolder one) two=$(guestFolder two)
seed=${VGPU_SEED:-$RANDOM} rounds=${VGPU_ROUNDS:-8}
echo "seed $seed"
guests=$(dirname "$0")/..
"$guests/in-guest" "$one" true || skip "no namespaces can be made here"
[ -x "$tree/tests/programs/contents" ] || skip "no program contents"
# A machine that is stopped without a word is one whose words are not to be trusted.
export VGPU_LINK_LIMIT=15
startNode a --guest "one=$one/memory,512MiB" --guest "two=$two/memory,256MiB"

# startInGuest MACHINE NAME MIB: as startContents, without waiting.
startInGuest() {
  local file
  rm -f "$dir/$2.in"
  mkfifo "$dir/$2.in"
  timeout $((10 * limit)) "$guests/in-guest" "${!1}" "$tree/bin/vgpuctl" \
    --node "ivshmem:${!1}/memory" run --name "$2" -- "$tree/tests/programs/contents" --serve random "$3" <"$dir/$2.in" >"$dir/$2.log" 2>&1 &
  runner[$2]=$!
  exec {file}<>"$dir/$2.in"
  commands[$2]=$file
}
startInGuest two bystander 8
waitUntil says bystander ready

# scribble SEED: some thousand writes, most of them where they are read.
scribble() {
  python3 - "$one/memory" "$1" <<'PY'
import mmap, random, sys, time
random.seed(int(sys.argv[2]))
MiB = 1 << 20
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    slots = range(2 * MiB, 512 * MiB - 138 * MiB, 138 * MiB)
    slot = random.choice(slots)
    areas = [(0, 64), (4096, 512), (slot, 256), (slot + 4096, 512 << 10), (slot + MiB, 8192), (slot + MiB + 8192, 1 << 16),
             (slot + 7 * MiB, 2 * MiB), (slot + 73 * MiB, 1 << 16), (0, 512 * MiB)]
    at, size = random.choice(areas)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        for _ in range(200):
            count = random.choice([1, 4, 8, 64])
            place = at + random.randrange(size - count + 1)
            value = random.choice([bytes(count), b"\xff" * count, random.randbytes(count)])
            memory[place:place + count] = value
    print(f"{at:#x} + {size:#x}")
PY
}

endedOrReady() { says "$1" ready || ended "${runner[$1]}"; }
for ((round = 0; round < rounds; ++round)); do
  name=victim$round
  startInGuest one "$name" 4
  ((round % 2 == 0)) || waitUntil endedOrReady "$name"
  scribble $((seed + round)) >>"$dir/scribbled.log" || fail "nothing was written"
  for ((i = 0; i < 20; ++i)); do echo verify >&"${commands[$name]}"; done
  echo quit >&"${commands[$name]}"
  scribble $((seed + round)) >>"$dir/scribbled.log"
  kill -0 "${daemon[a]}" || fail "vgpud has ended in round $round of seed $seed"
  memoryIsRight bystander
  kill -KILL "${runner[$name]}" 2>/dev/null
  closeCommands "$name"
done
# It is served again, in each slot.
serves() { timeout "$limit" "$guests/in-guest" "$one" "$tree/bin/vgpuctl" --node "ivshmem:$one/memory" run -- "$tree/tests/programs/vector-add" 1000 >"$dir/again.log" 2>&1; }
waitUntil serves
oneSession() { [ "$(ctl a ps --json | python3 -c 'import json, sys; print(*[s["name"] for s in json.load(sys.stdin)])')" = bystander ]; }
waitUntil oneSession
succeeds ctl a suspend bystander --to "$dir/snapshot"
succeeds ctl a resume "$dir/snapshot"
memoryIsRight bystander
endContents bystander
stopNode a
