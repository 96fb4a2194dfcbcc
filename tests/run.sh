#!/bin/sh
# `make test`: everything but what is marked slow. The tests on the simulator run beside the others, which often wait
# for processes and look at clocks, and give way to them; their result is printed at the end. With arguments: one pytest,
# which gets them.
set -u

PY=.venv/bin/python
BESIDE=tests/integration/pokemon
[ $# -eq 0 ] || exec "$PY" -m pytest -m "not slow" "$@"

log=$(mktemp)
nice -n 5 "$PY" -m pytest -m "not slow" -p no:cacheprovider "$BESIDE" >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

"$PY" -m pytest -m "not slow" --ignore="$BESIDE"
others=$?
wait "$beside"
besides=$?
cat "$log"
[ "$besides" -eq 0 ] && [ "$others" -eq 0 ]
