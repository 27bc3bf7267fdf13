# A run directory whose socket paths exceed the length of a socket address works like any other.
long=$(printf 'x%.0s' {1..120})
startNode "$long"
startDouble "$long" one
stillWorks "$long" one
stopNode "$long"
