# A program that gives its worker more files than a daemon keeps, or none where it says that it gives one, loses its session, and the daemon
# has none of its files any more. What it gives within the limit the daemon keeps as long as the session is there.
descriptors() { ls "/proc/${daemon[a]}/fd" | wc -l; }
hasAtMost() { [ "$(descriptors)" -le "$1" ]; }
startNode a
startDouble a one

# gives NAME MODE COUNT: at once, and the daemon has had them all.
gives() {
  startRogue a "$1" "$2" "$3"
  waitUntil says "$1" '^opened'
  before=$(descriptors)
  kill -USR1 "${double[$1]}"
}
hasMore() { [ "$(descriptors)" -ge $((before + $1)) ]; }

gives many give 1024
waitUntil hasMore 1024
listsNot a "${double[many]}" && fail "the daemon has ended a session within the limit"
kill -TERM "${double[many]}"
waitUntil listsNot a "${double[many]}"
waitUntil hasAtMost $((before + 16))

gives more give 1500
waitUntil listsNot a "${double[more]}"
waitUntil says a "more files than vgpud allows for one session"
waitUntil hasAtMost $((before + 16))

gives none nothing 1
waitUntil listsNot a "${double[none]}"
waitUntil says a "sent a file's name without its descriptor"
stillWorks a one
