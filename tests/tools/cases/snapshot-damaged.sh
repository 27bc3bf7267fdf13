# A damaged snapshot is refused with the file's name, the program keeps waiting, and the intact snapshot still works.
export VGPU_STORE=$dir/store
startNode a
startNode b
startDouble a one
succeeds ctl a suspend one --to "$dir/good"
succeeds ctl a snapshots verify "$dir/good"
[ ! -e "$VGPU_STORE" ] || fail "to verify a directory has made a store"
refused "$dir/nothing" ctl b resume "$dir/nothing"
mkdir "$dir/empty"
refused "$dir/empty" ctl b resume "$dir/empty"
for directory in "$dir/nothing" "$dir/empty"; do refused "there is no snapshot in $directory" ctl b snapshots verify "$directory"; done

# damage NAME COMMAND...: a copy, altered by COMMAND (which runs in it), must be refused with the file's name.
damage() {
  local name=$1
  shift
  cp -r "$dir/good" "$dir/$name"
  (cd "$dir/$name" && "$@") || fail "cannot damage $name"
  refused "$dir/$name" ctl b resume "$dir/$name"
  refused "cannot be resumed: .*$dir/$name" ctl b snapshots verify "$dir/$name"
  hasState a one suspended || fail "after $name the session is $(field a one state)"
}
flipByte() {
  python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(len(data) * float(sys.argv[2]))] ^= 0x20
open(sys.argv[1], "wb").write(data)' "$@"
}
for file in $(cd "$dir/good" && find . -type f -size +0 -printf '%P\n'); do
  tag=${file//\//-}
  damage "first-$tag" flipByte "$file" 0
  damage "middle-$tag" flipByte "$file" 0.5
  damage "last-$tag" flipByte "$file" 0.999999
  damage "cut-$tag" truncate -s -1 "$file"
  damage "half-$tag" truncate -s "$(($(stat -c %s "$dir/good/$file") / 2))" "$file"
  damage "none-$tag" rm "$file"
done
succeeds ctl b resume "$dir/good"
stillWorks b one

# A snapshot with memory, whose chunks are in its own packs.
startContents a filled 4
succeeds ctl a suspend filled --to "$dir/filled"
verifies() {
  succeeds ctl a snapshots verify "$dir/filled"
  says succeeds "^1 snapshots, [1-9][0-9]* chunks: all are intact" || fail "verify says: $(cat "$dir/succeeds.log")"
}
verifies
for pack in $(cd "$dir/filled" && find . -name 'pack*' -size +0); do
  for place in 0 0.5 0.999999; do
    (cd "$dir/filled" && flipByte "$pack" "$place")
    refused "cannot be resumed: .*${pack#./}: .*their digest does not match" ctl a snapshots verify "$dir/filled"
    (cd "$dir/filled" && flipByte "$pack" "$place")
  done
done
verifies
succeeds ctl b resume "$dir/filled"
memoryIsRight filled
