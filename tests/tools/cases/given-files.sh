# A program that passes more files to its worker than a daemon keeps, or announces one and passes none, loses its session, and the daemon
# closes all of its files. Within the limit, the daemon keeps passed files as long as the session exists.
descriptors() { ls "/proc/${daemon[a]}/fd" | wc -l; }
hasAtMost() { [ "$(descriptors)" -le "$1" ]; }
startNode a
startDouble a one

# gives NAME MODE COUNT: passes COUNT files at once, and waits until the daemon has received them all.
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
