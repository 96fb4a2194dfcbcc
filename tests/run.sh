#!/bin/sh
# `make test`: everything but what is marked slow. Most tests wait for processes and clocks, so three groups run at once.
# The results of the groups in the background are printed at the end.
# With arguments: one pytest, which gets them.
set -u

PY=.venv/bin/python
GAMES="tests/integration/pokemon tests/integration/turn_games"
[ $# -eq 0 ] || exec "$PY" -m pytest -m "not slow" "$@"

logs=$(mktemp -d)
# shellcheck disable=SC2086 # one word a folder
"$PY" -m pytest -m "not slow" -p no:cacheprovider $GAMES >"$logs/games" 2>&1 &
games=$!
"$PY" -m pytest -m "not slow" -p no:cacheprovider tests/chaos tests/unit >"$logs/chaos" 2>&1 &
chaos=$!
trap 'kill "$games" "$chaos" 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

"$PY" -m pytest -m "not slow" tests/integration --ignore=tests/integration/pokemon --ignore=tests/integration/turn_games
others=$?
wait "$chaos"
chaos_code=$?
wait "$games"
games_code=$?
cat "$logs/chaos" "$logs/games"
[ "$games_code" -eq 0 ] && [ "$chaos_code" -eq 0 ] && [ "$others" -eq 0 ]
