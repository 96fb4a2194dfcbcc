#!/bin/sh
# `make setup`: the virtual environment in .venv, and the simulator. Does nothing when nothing changed.
# Plain sh: nothing else is installed yet. Run from the root of the checkout.
set -u

STAMP=.venv/.simul-setup
LOCK=env_worker/games/pokemon/node/package-lock.json
FALLBACK=.venv/.simul-node-fallback # present while an older Node is used because the pinned one could not be fetched
AGAIN_MINUTES=60 # between two tries to fetch it; `make setup` itself always tries
SIMULATOR=env_worker/games/pokemon/node/node_modules/.simul-stamp
EVERY_SEC=5 # between two lines of progress where the output is no terminal

say() { printf '[setup] %s\n' "$*"; }
fail() { printf '[setup] %s\n' "$*" >&2; exit 2; }

# It includes the folder: an editable install breaks when it is moved.
fingerprint() { { pwd; cat pyproject.toml constraints.txt "$LOCK"; } | cksum; }

# step NUMBER NAME LABEL COMMAND...: one of the 3, with its progress; its output is in .venv/setup-NAME.log.
step() {
    number=$1 name=$2 label=$3
    shift 3
    sh "$(dirname "$0")/progress.sh" "$EVERY_SEC" ".venv/setup-$name.log" "step $number of 3: $label" "$@"
}

# True for `make setup` itself, false for a target that depends on it.
asked_for() { case " ${GOALS:-setup} " in *" setup "*) ;; *) return 1 ;; esac }

# Every Python on PATH and in the usual places, one a line.
candidates() {
    for folder in $(printf '%s' "$PATH" | tr ':' '\n') /usr/bin /usr/local/bin /opt/homebrew/bin; do
        for name in python3.14 python3.13 python3.12 python3.11 python3; do
            [ -x "$folder/$name" ] && printf '%s\n' "$folder/$name"
        done
    done
}

# PYTHON if it is given, else the fastest of all that will do.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || fail \
            "PYTHON=$PYTHON is no Python 3.11 or newer. Name another one, or leave PYTHON out: setup looks for the fastest."
        printf '%s' "$PYTHON"
        return
    fi
    best= best_time= without_venv=
    for candidate in $(candidates); do
        time=$("$candidate" launch/setup/probe_python.py 2>/dev/null)
        case $? in
            0) ;;
            3) without_venv=$candidate; continue ;;
            *) continue ;;
        esac
        if [ -z "$best" ] || [ "$time" -lt "$best_time" ]; then
            best=$candidate best_time=$time
        fi
    done
    [ -n "$best" ] || best=$without_venv
    [ -n "$best" ] || fail "No Python 3.11 or newer found (looked for python3.14 to python3.11 and python3)." \
        "Install one, or name it: make setup PYTHON=/path/to/python3"
    printf '%s' "$best"
}

make_venv() {
    if [ -x .venv/bin/python ] && .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' \
        >/dev/null 2>&1; then
        return
    fi
    [ -n "${PYTHON:-}" ] || say "looking for the fastest Python"
    python=$(find_python) || exit 2
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || fail \
        "$python has no venv module. On Debian and Ubuntu: sudo apt-get install python3-venv; then run this again."
    rm -rf .venv
    mkdir .venv || fail "The folder $(pwd)/.venv cannot be made (see above)."
    step 1 venv "making the virtual environment .venv with $("$python" --version) ($python)" \
        "$python" -m venv .venv || fail "The virtual environment could not be made in $(pwd)/.venv (see above)."
}

install_packages() {
    step 2 packages \
        "installing the Python packages (several minutes and 1.5 GB, or 5 where pip takes the CUDA build, the first time)" \
        .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt -e '.[dev,page]' \
        --config-settings editable_mode=compat || fail \
        "pip could not install the packages (see above). It needs the package index:" \
        "check the network or the proxy, then run make setup again."
}

started=$(date +%s)
if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(fingerprint)" ] && [ -x .venv/bin/simul ] && [ -f "$SIMULATOR" ]; then
    if [ -f "$FALLBACK" ] && { asked_for || [ -n "$(find "$FALLBACK" -mmin "+$AGAIN_MINUTES")" ]; }; then
        .venv/bin/python -m simul.env_worker.games.pokemon.install.setup_node || exit 2
    fi
    exit 0
fi
[ -w . ] || fail "The folder $(pwd) cannot be written. Clone Simul into a folder of yours."
make_venv
install_packages
rm -rf env_worker/games/pokemon/sim_host # where older checkouts have the simulator's packages
step 3 simulator "installing the simulator" .venv/bin/python -m simul.env_worker.games.pokemon.install.setup_node || exit 2
cat .venv/setup-simulator.log
fingerprint >"$STAMP"
say "done in $(($(date +%s) - started)) s"
