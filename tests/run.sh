#!/bin/sh
# `make test`: everything but what is marked slow. What needs the simulator and what is about its games runs beside the
# others, which often wait for processes and look at clocks, and gives way to them; its result is printed at the end.
# With arguments: one pytest, which gets them.
set -u

PY=.venv/bin/python
BESIDE="tests/integration/pokemon tests/unit/env_worker"
[ $# -eq 0 ] || exec "$PY" -m pytest -m "not slow" "$@"

log=$(mktemp)
# shellcheck disable=SC2086 # one word a folder
nice -n 5 "$PY" -m pytest -m "not slow" -p no:cacheprovider $BESIDE >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# shellcheck disable=SC2046
"$PY" -m pytest -m "not slow" $(printf -- '--ignore=%s ' $BESIDE)
others=$?
wait "$beside"
besides=$?
cat "$log"
[ "$besides" -eq 0 ] && [ "$others" -eq 0 ]
