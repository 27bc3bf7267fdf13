# Without root: a CRIU without capabilities is refused with the missing ones before the program is affected; one that has them saves and
# restores a program.
if [ "$(id -u)" = 0 ]; then
  { command -v setcap && command -v setpriv; } >/dev/null || skip "no setcap or no setpriv"
  other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${other[@]}" test -x "$0" || skip "other users cannot read this checkout"
  chmod 711 "$dir"
  mkdir "$dir/plain" "$dir/able"
  cp "$(criuFile)" "$dir/plain/criu" && cp "$dir/plain/criu" "$dir/able/criu" || skip "no CRIU"
  setcap cap_checkpoint_restore,cap_sys_ptrace,cap_setpcap+eip "$dir/able/criu" 2>"$dir/setcap.log" || skip "$(cat "$dir/setcap.log")"
  HOME=/nowhere VGPU_CRIU=$dir/able/criu "${other[@]}" "$0" "$tree" "$doubleProgram" \
    "$(dirname "$0")/cases/process-unprivileged.sh"
  exit
fi
able=${VGPU_CRIU:-}
[ -n "$able" ] || skip "only root can give a CRIU capabilities"
plain=$(dirname "$(dirname "$able")")/plain/criu
startNode a
startNode b
startContents a held 4
pid=$(field a held pid)
lacks="$plain does not work here: CRIU needs to have the .*CAP_CHECKPOINT_RESTORE capability. Run vgpuctl as root, or as root: setcap cap_[^ ]*+eip $plain"
VGPU_CRIU=$plain refused "$lacks" ctl a suspend held --process --to "$dir/saved"
isGone "$dir/saved" || fail "something of a snapshot is left"
memoryIsRight held
succeeds ctl a suspend held --process --to "$dir/saved"
waitUntil ended "$pid"
VGPU_CRIU=$plain refused "$lacks" ctl b resume "$dir/saved"
ctl b resume --wait "$dir/saved" >"$dir/resume.log" 2>&1 &
runner[held]=$!
waitUntil hasState b held running
[ "$(field b held pid)" = "$pid" ] || fail "the program has another process id"
memoryIsRight held
endContents held
stopNode a
stopNode b
