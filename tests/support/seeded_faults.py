"""`make test-faults`: small faults in the code, drawn by seed, and which of them the tests of their room find.

Before tests are thinned out: `--draw 7` writes the faults to a file and runs each against its room. Afterwards the same
command without `--draw` looks the same lines up again, wherever they have moved to, and runs them. What was found
before has to be found again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from simul.common.runtime.installation import ROOT

LIMIT_SEC = 90  # of the tests of a room
OVERDUE = 124  # exit code of timeout
A_ROOM = 5  # faults
RECORD = ROOT / "runs" / "seeded-faults.jsonl"
UNIT, GAMES = "tests/unit", "env_worker/games"
TURNED = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# room: (folders and files of its code, its tests)
ROOMS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "config": (["common/config"], [f"{UNIT}/common/config", "tests/integration/test_refused_starts.py"]),
    "wire": (
        ["common/protocol", "common/transport", "common/client"],
        [f"{UNIT}/common/protocol", f"{UNIT}/common/transport", f"{UNIT}/common/client",
         "tests/integration/test_server_sessions.py", "tests/integration/test_client_lives.py"],
    ),
    "nets": (["common/checkpoints", "common/nets"], [f"{UNIT}/common/checkpoints", f"{UNIT}/common/nets"]),
    "ground": (
        ["common/runtime", "common/store"],
        [f"{UNIT}/common/runtime", f"{UNIT}/common/store", "tests/integration/test_store.py"],
    ),
    "supervisor": (
        ["launch/supervisor", "launch/processes", "launch/cluster"],
        [f"{UNIT}/launch/supervisor", f"{UNIT}/launch/processes", f"{UNIT}/launch/cluster",
         "tests/integration/test_supervisor.py"],
    ),
    "monitoring": (
        ["launch/monitoring", "launch/ratings"],
        [f"{UNIT}/launch/monitoring", f"{UNIT}/launch/ratings", "tests/integration/test_logs.py"],
    ),
    "commands": (
        ["launch/commands", "launch/evaluation", "launch/diagnostics", "launch/cli.py", "launch/command_line.py",
         "launch/option_types.py", "launch/api.py"],
        [f"{UNIT}/launch/commands", f"{UNIT}/launch/evaluation", f"{UNIT}/launch/diagnostics",
         f"{UNIT}/launch/test_cli.py", f"{UNIT}/launch/test_option_types.py", f"{UNIT}/test_api.py",
         "tests/integration/test_api.py"],
    ),
    "sessions": (
        ["inference_server/batching", "inference_server/sessions", "inference_server/frontend",
         "inference_server/unrolls", "inference_server/proxy"],
        [*(f"{UNIT}/inference_server/{room}" for room in ("batching", "sessions", "frontend", "unrolls", "proxy")),
         "tests/chaos/test_faults_rows.py"],
    ),
    "engine": (
        ["inference_server/base", "inference_server/engine", "inference_server/policies", "inference_server/ops",
         "inference_server/serving", "inference_server/server.py"],
        [*(f"{UNIT}/inference_server/{room}" for room in ("engine", "policies", "ops", "serving")),
         "tests/integration/test_evaluate.py", "tests/integration/test_server_sessions.py"],
    ),
    "tables": (
        ["env_worker/worker.py", "env_worker/source.py", "env_worker/search", f"{GAMES}/base", f"{GAMES}/gymnasium",
         f"{GAMES}/ofc", f"{GAMES}/blokus", f"{GAMES}/openspiel", f"{GAMES}/pettingzoo"],
        [f"{UNIT}/env_worker/search", f"{UNIT}/env_worker/test_worker.py", f"{UNIT}/{GAMES}/base",
         f"{UNIT}/{GAMES}/gymnasium", f"{UNIT}/{GAMES}/ofc", f"{UNIT}/{GAMES}/blokus", f"{UNIT}/{GAMES}/openspiel",
         f"{UNIT}/{GAMES}/pettingzoo"],
    ),
    "pokemon": (
        [f"{GAMES}/pokemon"],
        [f"{UNIT}/{GAMES}/pokemon", "tests/integration/pokemon/test_source.py",
         "tests/integration/pokemon/test_vectors.py", "tests/integration/pokemon/test_damage_hits.py"],
    ),
    "learner": (["learner"], [f"{UNIT}/learner", "tests/integration/test_learner.py"]),
}  # fmt: skip


class Fault(msgspec.Struct):
    """`before`, which stands once in the function `name` of a file of its room, becomes `after`."""

    room: str
    file: str
    name: str
    kind: str
    before: str
    after: str
    found: bool | None = None  # None: not run, or the place is no longer there
    by: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: what was found before is found again; 1: something is not; 2: no faults are recorded."""
    parser = argparse.ArgumentParser(prog="make test-faults", description=__doc__)
    parser.add_argument("--draw", type=int, metavar="SEED", help="draw new faults (default: those of the record)")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE")
    parser.add_argument("--room", action="append", choices=list(ROOMS), help="only this room; again for more")
    options = parser.parse_args(arguments)
    if options.draw is None and not options.record.exists():
        sys.stderr.write(f"test-faults: {options.record} does not exist. Draw faults with --draw SEED first.\n")
        return 2
    if subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.stderr.write("test-faults: commit your changes first: files are changed and taken back by git.\n")
        return 2
    if options.draw is not None:
        earlier, faults = [], draw(options.draw)
    else:
        earlier = [msgspec.json.decode(line, type=Fault) for line in options.record.read_bytes().splitlines()]
        faults = [moved(fault) for fault in earlier]
    options.record.parent.mkdir(exist_ok=True)
    lost = 0
    for number, fault in enumerate(faults):
        if options.room and fault.room not in options.room:
            continue
        run(fault)
        lost += bool(earlier and earlier[number].found and not fault.found)
        said = {True: "found", False: "NOT FOUND", None: "its place has changed"}[fault.found]
        where = f"{fault.room}: {fault.file}: {fault.name}: {fault.kind}"
        sys.stdout.write(f"[{number + 1}/{len(faults)}] {where}: {said} {fault.by}\n")
        sys.stdout.flush()
        if options.draw is not None:
            with options.record.open("ab") as lines:
                lines.write(msgspec.json.encode(fault) + b"\n")
    sys.stdout.write(
        f"{sum(bool(f.found) for f in faults)} of {len(faults)} found, {lost} lost that were found before\n"
    )
    return 1 if lost else 0


def draw(seed: int) -> list[Fault]:
    """A_ROOM faults a room, as different in kind as the room allows."""
    dice, drawn = random.Random(seed), []
    for room in ROOMS:
        places = [fault for file in _files(room) for fault in _faults(room, file)]
        dice.shuffle(places)
        chosen: list[Fault] = []
        for kind in dice.sample(sorted({place.kind for place in places}), k=len({p.kind for p in places})):
            chosen += [place for place in places if place.kind == kind][:1]
        drawn += chosen[:A_ROOM]
    return drawn


def moved(fault: Fault) -> Fault:
    """The fault where its function is now, as not run."""
    files = [fault.file, *_files(fault.room), *(file for room in ROOMS for file in _files(room))]
    file = next((file for file in files if _place(file, fault)), "")
    return msgspec.structs.replace(fault, file=file or fault.file, found=None, by="")


def run(fault: Fault) -> None:
    """Put the fault into its file, run the tests of its room, and take it out again."""
    function = _place(fault.file, fault)
    if not function:
        return
    path, text = ROOT / fault.file, _text(fault.file)
    line = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow"]
    path.write_text(text.replace(function, function.replace(fault.before, fault.after), 1))
    try:
        tests = [test for test in ROOMS[fault.room][1] if (ROOT / test).exists()]
        line = ["timeout", "-k", "10", str(LIMIT_SEC), *line, *tests]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    finally:
        path.write_text(text)
    fault.found = done.returncode in (1, 2, 3, 4)  # 124: the tests did not end in time, which is no finding
    failed = (part for part in done.stdout.splitlines() if part.startswith(("FAILED", "ERROR")))
    fault.by = "(not through in time)" if done.returncode == OVERDUE else next(failed, "")[:160]


def _place(file: str, fault: Fault) -> str:
    """Source of the function of the fault in a file; empty where it is not there."""
    text = _text(file)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    sources = (ast.get_source_segment(text, node) or "" for node in nodes if node.name == fault.name)
    return next((source for source in sources if source.count(fault.before) == 1), "")


def _files(room: str) -> list[str]:
    found: list[str] = []
    for name in ROOMS[room][0]:
        path = ROOT / name
        each = [path] if path.is_file() else sorted(path.rglob("*.py"))
        found += [str(file.relative_to(ROOT)) for file in each if "node_modules" not in file.parts]
    return found


def _text(file: str) -> str:
    return (ROOT / file).read_text() if (ROOT / file).exists() else ""


def _faults(room: str, file: str) -> Iterator[Fault]:
    text = _text(file)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            before = ast.get_source_segment(text, node)
            for part in ast.walk(node):
                for kind, old, new in _changes(text, part):
                    if before and before.count(old) == 1:
                        yield Fault(room, file, node.name, kind, old, new)


def _changes(text: str, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(Kind, source, changed source) of the faults that one expression or statement allows."""
    old = ast.get_source_segment(text, node) or ""  # type: ignore[arg-type]
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator]) if type(operator) in TURNED:
            changed.ops = [TURNED[type(operator)]()]
            yield "a comparison turned", old, f"({ast.unparse(changed)})"
        case ast.Subscript(slice=ast.Constant(value=int(index))):
            changed.slice = ast.Constant(index + 1)
            yield "an index off by one", old, ast.unparse(changed)
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1), left=left):
            yield "an index off by one", old, f"({ast.unparse(left)})"
        case ast.If(test=test):
            source = ast.get_source_segment(text, test) or ""
            yield "a branch dropped", f"if {source}:", "if False:"
        case ast.Call(args=[ast.Name() | ast.Attribute() as one, ast.Name() | ast.Attribute() as two, *_]):
            changed.args[:2] = [two, one]
            yield "two fields exchanged", old, ast.unparse(changed)
        case ast.AugAssign():
            yield "a count left out", old, "pass"


if __name__ == "__main__":
    sys.exit(main())
