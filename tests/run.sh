#!/bin/sh
# `make test`: everything but what is marked slow. Most tests wait for processes and clocks, so four groups run at once.
# They take about the same processor time: Pokémon's last files are with the unit tests. The results of the groups in
# the background are printed at the end.
# With arguments: one pytest, which gets them.
set -u

PY=.venv/bin/python
[ $# -eq 0 ] || exec "$PY" -m pytest -m "not slow" "$@"

logs=$(mktemp -d)
pids=
in_background() { # in_background NAME PATH...
	name=$1
	shift
	"$PY" -m pytest -m "not slow" -p no:cacheprovider "$@" >"$logs/$name" 2>&1 &
	pids="$pids $!"
}
in_background pokemon tests/integration/pokemon/test_[a-s]*.py
in_background unit tests/unit tests/integration/pokemon/test_[t-z]*.py
in_background chaos tests/chaos tests/integration/turn_games tests/integration/test_l*.py
# shellcheck disable=SC2086 # one word a process
trap 'kill $pids 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

"$PY" -m pytest -m "not slow" tests/integration --ignore=tests/integration/turn_games \
	--ignore=tests/integration/pokemon --ignore-glob='*/integration/test_l*.py'
code=$?
for pid in $pids; do
	wait "$pid" || code=1
done
cat "$logs"/*
exit "$code"
