# Damage that a program does to its object list harms no process that reads it.
startNode a
startDouble a one
startDouble a two
list() { echo "$(field a "$1" directory)/objects"; }

# After truncation, a page that the list refers to is missing: reading it raises SIGBUS.
truncate -s 8192 "$(list one)/data.mdb"
refused 'the object list of session .* is damaged: .* signal 7' ctl a inspect one

# A link or a special file does not lead a reader elsewhere, and nothing is written.
echo precious >"$dir/precious"
rm "$(list two)/lock.mdb"
ln -s "$dir/precious" "$(list two)/lock.mdb"
succeeds ctl a inspect two
[ "$(cat "$dir/precious")" = precious ] || fail "inspect wrote through a link of the program's"
rm "$(list one)/data.mdb"
ln -s /dev/zero "$(list one)/data.mdb"
refused 'data.mdb' ctl a inspect one
rm "$(list one)/data.mdb"
truncate -s 20G "$(list one)/data.mdb"
refused 'data.mdb is larger than' ctl a inspect one
stillWorks a two
