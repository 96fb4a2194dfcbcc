#!/bin/sh
# Runs a command and shows meanwhile that it runs: `progress.sh SECONDS LOG LABEL COMMAND...`.
# On a terminal one line that is redrawn every second, elsewhere a line every SECONDS. The output of the command goes to
# the file LOG; after a failure its end is printed. The exit code is that of the command. Of LABEL, `step 2 of 3: words`,
# what is before the colon is repeated.
set -u

every=$1 log=$2 label=$3
shift 3
began=$(date +%s)
width=$(($(tput cols 2>/dev/null || echo 80) - 1))
[ -t 1 ] && every=1

# The last line of the log, printable ASCII only.
last_line() {
    tail -c 4096 "$log" 2>/dev/null | tr '\r' '\n' | LC_ALL=C tr -cd '[:print:]\n' | sed '/^ *$/d' | tail -n 1
}

# Formats are made of the width: printf of POSIX has no `*`.
show() {
    text="[setup] ${label%%:*}, $(($(date +%s) - began)) s: $(last_line)"
    if [ -t 1 ]; then printf "\r%-$width.${width}s" "$text"; else printf '%.160s\n' "$text"; fi
}

# The sleep holds no output open: a reader of it would wait for its end. $$ is the script, also in the background.
show_meanwhile() {
    while sleep "$every" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do show; done
}

stop_showing() {
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null
    if [ -t 1 ]; then printf "\r%${width}s\r" ''; fi
}

printf '[setup] %s\n' "$label"
show_meanwhile &
ticker=$!
trap 'stop_showing; exit 130' INT
trap 'stop_showing; exit 143' TERM HUP
"$@" >"$log" 2>&1
code=$?
stop_showing
if [ "$code" -ne 0 ]; then
    tail -n 30 "$log" >&2
    printf '[setup] %s: failed after %s s (exit code %s); its whole output is in %s\n' \
        "${label%%:*}" "$(($(date +%s) - began))" "$code" "$log" >&2
    exit "$code"
fi
printf '[setup] %s: done in %s s\n' "${label%%:*}" "$(($(date +%s) - began))"
