# One daemon per run directory; files of a dead daemon do not prevent the next from starting.
startNode a
refused "another vgpud (pid ${daemon[a]}) runs on $dir/a" "$tree/bin/vgpud" --run-dir "$dir/a" --device emulated
startDouble a one
stillWorks a one

killNode a
waitUntil ended "${double[one]}"
says one '^lost: the connection to vgpud ended' || fail "the program was not told"
startNode a
startDouble a two
stillWorks a two
hasOneDirectory() { [ "$(ls "$dir/a/sessions")" = "$(field a two session)" ]; }
waitUntil hasOneDirectory  # the dead daemon's sessions are not left
