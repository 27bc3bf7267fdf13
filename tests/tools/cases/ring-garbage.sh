# Garbage in the ring ends the session that wrote it, and affects no other.
startNode a
startDouble a honest
for seed in 1 2 3 4; do
  DOUBLE_GARBAGE=$seed startDouble a "hostile$seed"
  waitUntil ended "${double[hostile$seed]}"
  says "hostile$seed" '^lost: ' || fail "a program that wrote garbage kept its session (seed $seed)"
  waitUntil listsNot a "hostile$seed"
done
stillWorks a honest
startDouble a another
stillWorks a another
