# A run directory whose sockets' paths are longer than a socket address works like any other.
long=$(printf 'x%.0s' {1..120})
startNode "$long"
startDouble "$long" one
stillWorks "$long" one
stopNode "$long"
