# A snapshot of another format version is refused with both versions, even if its checksum is right.
startNode a
startNode b
startDouble a one
succeeds ctl a suspend one --to "$dir/good"
cp -r "$dir/good" "$dir/future"
"$tree/tests/tools/reseal" "$dir/future/manifest.json" version 99 || fail "cannot forge a manifest"
refused "manifest.json: format version 99, and this build" ctl b resume "$dir/future"
hasState a one suspended || fail "the session is $(field a one state)"
succeeds ctl b resume "$dir/good"
stillWorks b one
