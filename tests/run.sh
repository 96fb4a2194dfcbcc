#!/bin/sh
# `make test`: everything but what is marked slow. The unit tests run beside the others, which often wait for processes,
# and give way to them; their result is printed at the end. With arguments: one pytest, which gets them.
set -u

PY=.venv/bin/python
[ $# -eq 0 ] || exec "$PY" -m pytest -m "not slow" "$@"

log=$(mktemp)
nice -n 10 "$PY" -m pytest -m "not slow" -p no:cacheprovider tests/unit >"$log" 2>&1 &
unit=$!
trap 'kill "$unit" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

"$PY" -m pytest -m "not slow" --ignore=tests/unit
others=$?
wait "$unit"
units=$?
cat "$log"
[ "$units" -eq 0 ] && [ "$others" -eq 0 ]
