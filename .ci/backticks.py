"""For `make lint`: what comments, docstrings and ARCHITECTURE.md name exists.

A name in backticks is known where it stands in the code of its own file, or where any file defines it: class, function,
attribute, string without spaces (report keys, settings, options), word of the configurations, file, folder. Text that
is no name is not looked at, nor are words with digits, in capitals, or of two letters.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence

from simul.common.runtime.installation import ROOT

FOLDERS = ("common", "launch", "inference_server", "env_worker", "learner")
HOST = "games/pokemon/"  # whose names in JavaScript only its own files know
NAMED = re.compile(r"`([^`\n]+)`")
COMMENT = re.compile(r"(?:^|\s)(?:#|//|/?\*).*")
WORD = re.compile(r"[^\W\d]\w\w+")
NAME = re.compile(r"([\w./*-]*\w/?)(?:\(.*\))?(?:=[\w./*-]+)?|((?:simul|python|make|--?\w) ?(?:(?!\.\.\.).)*)")
EXAMPLE = re.compile(r"[A-Z_\d]+|\w*\d\w*")
OF_OTHERS = {
    *dir(builtins), "await", "nohup", "load_state_dict", "utils", "SummaryWriter",
    "retrieve_id", "switch_in", "to_id_str",  # poke-env
    "partner_active", "self_active", "simul_run_episodes_return_mean",  # put together while it runs
}  # fmt: skip


def main() -> int:
    """Exit code 0 if every name exists."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [file for file in files if (ROOT / file).is_file()]
    known, of_host = OF_OTHERS.union(*map(WORD.findall, files)), set()
    texts, own, docs = {}, {}, {}
    for file in files:
        if file.startswith("configs/") or file in ("pyproject.toml", "Makefile"):
            known.update(WORD.findall((ROOT / file).read_text()))
        elif file == "ARCHITECTURE.md" or (file.split("/")[0] in FOLDERS and file.endswith((".py", ".mjs", ".cjs"))):
            texts[file] = (ROOT / file).read_text()
    for file, text in texts.items():
        if file.endswith(".py"):
            own[file], defined, docs[file] = _read(ast.parse(text))
            known |= defined
        elif file.endswith("js"):
            of_host.update(WORD.findall(COMMENT.sub("", text)))
    stale = [
        f"{file}:{line} `{name}`: there is no such name\n"
        for file, text in texts.items()
        for line, name in _named(text, docs.get(file, ()), whole=file.endswith(".md"))
        if not _exists(name, (known, own.get(file, set()), of_host if HOST in file else set()))
    ]
    sys.stdout.writelines(stale)
    return bool(stale)


def _exists(name: str, known: Sequence[set[str]]) -> bool:
    if not (match := NAME.fullmatch(name)):
        return True
    if re.match(rf"python -m ({'|'.join(FOLDERS)})\b", name):
        return False  # modules are those of the package simul
    words = [word for word in WORD.findall(match[1] or match[2]) if not EXAMPLE.fullmatch(word)]
    return all(any(word in some for some in known) for word in words)


def _read(tree: ast.Module) -> tuple[set[str], set[str], set[int]]:
    """All words of a file's code, those of them that it defines, and the lines of its docstrings."""
    words: set[str] = set()
    defined: set[str] = set()
    nodes = list(ast.walk(tree))
    docs = {node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                defined.add(name)
            case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                words.update(name.split("."))
            case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                words.add(name)
            case ast.Constant(value=str(text)) if " " not in text and node not in docs:
                defined.update(WORD.findall(text))
        if isinstance(node, ast.Module | ast.ClassDef):
            stored = [part for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)
                      for part in ast.walk(each)]  # fmt: skip
            defined.update(part.id for part in stored if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return words | defined, defined, {line for doc in docs for line in range(doc.lineno, doc.end_lineno + 1)}


def _named(text: str, docs: Collection[int], *, whole: bool) -> Iterator[tuple[int, str]]:
    """Line and name of everything in backticks in comments and docstrings, or in the whole text."""
    for number, line in enumerate(text.splitlines(), 1):
        for part in [line] if whole or number in docs else COMMENT.findall(line):
            yield from ((number, name) for name in NAMED.findall(part))


if __name__ == "__main__":
    sys.exit(main())
