# A suspended program waits for the daemon that resumes it at a socket in its state directory, which only its user can reach; the daemon
# uses no other socket.
startNode a
startNode b
startDouble a one
state=$(field a one directory)

# abstractSockets PID: names of its abstract sockets, which every user can read and connect to.
abstractSockets() {
  find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
    awk 'NR == FNR { ours[$1] = 1; next } $7 in ours && $8 ~ /^@/ { print $8 }' - /proc/net/unix
}
[ "$(abstractSockets "${double[one]}")" = "" ] || fail "the program listens where everybody can connect"
[ "$(stat -c %a "$state/reattach.sock")" = 600 ] || fail "the program's socket is not its user's alone"

succeeds ctl a suspend one --to "$dir/x"
chmod 755 "$state"
refused "its mode is 755" ctl b resume "$dir/x"
chmod 700 "$state"
mv "$state" "$dir/elsewhere"
ln -s "$dir/elsewhere" "$state"
refused "is not the state directory of session" ctl b resume "$dir/x"
rm "$state"
mv "$dir/elsewhere" "$state"
hasState a one suspended || fail "the session is $(field a one state)"
succeeds ctl b resume "$dir/x"
stillWorks b one

# A snapshot whose state directory is not that of a session is not followed there.
succeeds ctl b suspend one --to "$dir/y"
cp -r "$dir/y" "$dir/forged"
"$tree/tests/tools/reseal" "$dir/forged/manifest.json" /identity/reattach "\"$dir/b/vgpud.sock\"" || fail "cannot forge a manifest"
refused "is not the directory of a waiting program" ctl b resume "$dir/forged"
succeeds ctl b resume "$dir/y"
stillWorks b one
