# A snapshot that is not what was written is refused by name, the program waits on, and the whole one still works.
startNode a
startNode b
startDouble a one
succeeds ctl a suspend one --to "$dir/good"
refused "$dir/nothing" ctl b resume "$dir/nothing"
mkdir "$dir/empty"
refused "$dir/empty" ctl b resume "$dir/empty"

# damage NAME COMMAND...: a copy, altered by COMMAND (which runs in it), is refused with the file's name.
damage() {
  local name=$1
  shift
  cp -r "$dir/good" "$dir/$name"
  (cd "$dir/$name" && "$@") || fail "cannot damage $name"
  refused "$dir/$name" ctl b resume "$dir/$name"
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
