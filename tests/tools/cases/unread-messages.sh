# A peer that sends requests and does not read the replies costs the daemon neither memory nor disk.
count=40000 mostMiB=150 mostLogBytes=100000
peakMiB() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/${daemon[a]}/status"; }
wasBounded() {
  succeeds ctl a ps
  [ "$(($(peakMiB) - before))" -lt "$mostMiB" ] || fail "$1: vgpud grew by $(($(peakMiB) - before)) MiB"
  [ "$(stat -c %s "$dir/a.log")" -lt "$mostLogBytes" ] || fail "$1: vgpud wrote $(stat -c %s "$dir/a.log") bytes of log"
}
hasFlooded() { says "$1" '^sent' || says "$1" '^cut off'; }

# So that freed memory that address sanitizer holds back is not counted as the daemon's.
[ -z "${ASAN_OPTIONS:-}" ] || export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=8
startNode a
startDouble a one
before=$(peakMiB)

startRogue a running renew $count
waitUntil says running '^opened'
kill -USR1 "${double[running]}"
waitUntil hasFlooded running
wasBounded "renewals of a running session"

# Each of these requests gets a reply at once, because there is no worker to replace.
startRogue a lost renew 1000000
waitUntil says lost '^opened'
lost=$(field a "${double[lost]}" session)
kill -KILL "$(field a "$lost" workerPid)"
waitUntil hasState a "$lost" lost
kill -USR1 "${double[lost]}"
waitUntil hasFlooded lost
wasBounded "renewals of a lost session"
waitUntil listsNot a "$lost"
says a "does not read" || fail "the daemon does not say why it ended the session"

startRogue a lists list $count
waitUntil hasFlooded lists
wasBounded "lists"
stillWorks a one
