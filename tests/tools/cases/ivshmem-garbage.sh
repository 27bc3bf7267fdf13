# A machine that writes random bytes into the memory that it shares with its host only ends its own sessions; another machine's sessions and
# the host go on, and when it stops doing so it is served again. VGPU_SEED repeats a run.
one=$(guestFolder one) two=$(guestFolder two)
seed=${VGPU_SEED:-$RANDOM} rounds=${VGPU_ROUNDS:-8}
echo "seed $seed"
guests=$(dirname "$0")/..
"$guests/in-guest" "$one" true || skip "no namespaces can be made here"
[ -x "$tree/tests/programs/contents" ] || skip "no program contents"
# Seconds after which the sessions of a machine that stops without notice end.
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

# scribble SEED AREA: some thousand writes into one of the areas that the host reads, given by its name or a number, preferably in a slot
# that is in use.
scribble() {
  python3 - "$one/memory" "$1" "$2" <<'PY'
import mmap, random, struct, sys, time
random.seed(int(sys.argv[2]))
KiB, MiB = 1 << 10, 1 << 20
TABLE, FIRST, SLOT = 4 * KiB, 2 * MiB, 138 * MiB  # docs/virtual-machines.md
SEGMENT = MiB                                     # in a slot, behind the mailbox; vgpu/wire/segment.h defines its contents
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    count = (len(memory) - FIRST) // SLOT
    taken = [i for i in range(count) if struct.unpack_from("<Q", memory, TABLE + 128 * i)[0]]
    slot = FIRST + SLOT * random.choice(taken or range(count))
    segment = slot + SEGMENT
    replies = segment + 8 * KiB + 4 * MiB
    words = replies + 2 * MiB
    slab_states = words + 2 * MiB
    slabs = segment + 8 * MiB + 64 * KiB
    areas = [("header", 0, 64), ("table", TABLE, 512), ("mailbox", slot, 256), ("mailbox's rings", slot + 4 * KiB, 508 * KiB),
             ("heads of rings", segment, 8 * KiB), ("slots", segment + 8 * KiB, 64 * KiB), ("replies", replies, 64 * KiB),
             ("completion words", words, 64 * KiB), ("slab states", slab_states, 4 * KiB), ("slabs", slabs, 4 * MiB),
             ("ring", slabs + 64 * MiB, 4 * MiB), ("all", 0, len(memory))]
    wanted = sys.argv[3]
    name, at, size = areas[int(wanted) % len(areas)] if wanted.isdigit() else next(area for area in areas if area[0] == wanted)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        for _ in range(200):
            count = random.choice([1, 4, 8, 64])
            place = at + random.randrange(size - count + 1)
            value = random.choice([bytes(count), b"\xff" * count, random.randbytes(count)])
            memory[place:place + count] = value
    print(f"{name}: {at:#x} + {size:#x}{'' if taken else ', which is free'}")
PY
}

endedOrReady() { says "$1" ready || ended "${runner[$1]}"; }
for ((round = 0; round < rounds; ++round)); do
  name=victim$round
  startInGuest one "$name" 4
  ((round % 2 == 0)) || waitUntil endedOrReady "$name"
  scribble $((seed + round)) $((seed + 2 * round)) >>"$dir/scribbled.log" || fail "nothing was written"
  for ((i = 0; i < 20; ++i)); do echo verify >&"${commands[$name]}"; done
  echo quit >&"${commands[$name]}"
  scribble $((seed + round)) $((seed + 2 * round + 1)) >>"$dir/scribbled.log"
  kill -0 "${daemon[a]}" || fail "vgpud has ended in round $round of seed $seed"
  memoryIsRight bystander
  kill -KILL "${runner[$name]}" 2>/dev/null
  closeCommands "$name"
done
# Slots that garbage marks as claimed are released, and a program that starts meanwhile waits for that.
python3 - "$one/memory" <<'PY'
import random, sys
with open(sys.argv[1], "r+b") as file:
    for slot in range(3):
        file.seek((4 << 10) + 128 * slot)  # the word `claimed`
        file.write(random.randbytes(8))
PY
# In areas where garbage is never valid input, the session ends.
victimRuns() { says "$area" ready && [ "$(field a "$area" state)" = running ]; }
for area in mailbox ring; do
  startInGuest one "$area" 4
  waitUntil victimRuns
  scribble "$seed" "$area" >>"$dir/scribbled.log"
  waitUntil listsNot a "$area"
  memoryIsRight bystander
  kill -KILL "${runner[$area]}" 2>/dev/null
  closeCommands "$area"
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
