"""What lies in a store, by name, and which checkpoints stay there. Pure.

    owner.json                                          the run that writes
    origin                                              the `--from` that the run began with, if any
    checkpoints/000000420-81920-1f0c9a3be55d1c04/       weights.safetensors  optimizer.safetensors  meta.json
    past/000000300-65536-9c2e4471a0c7be12/              the league's past selves, without the optimizer
    best/000000400-77824-07d1f2c3b4a59687/              the best evaluated checkpoint, with evaluation.json

A folder is named after its version, the decisions learned and the SHA-256 of meta.json, which holds the hashes of the
other files. The same name means the same content, so that two writers cannot spoil each other's checkpoints. A folder
is whole while it holds meta.json, which is written last and removed first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from simul.common.checkpoints.meta import META_FILE

Kind = Literal["checkpoints", "past", "best"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OWNER_FILE = "owner.json"
ORIGIN_FILE = "origin"
KEEP_NEWEST = 2
STOP_WAIT_SEC = 120.0  # a learner that stops waits at most so long for the store
_FOLDER = re.compile(
    r"^(?P<kind>checkpoints|past|best)/(?P<version>\d{9})-(?P<decisions>\d+)-(?P<digest>[0-9a-f]{16})$"
)


@dataclass(frozen=True)
class Entry:
    """A folder of the store."""

    kind: Kind
    version: int
    decisions: int
    digest: str

    @property
    def path(self) -> str:
        """Its path in the store."""
        return f"{self.kind}/{self.version:09d}-{self.decisions}-{self.digest}"

    @property
    def local_name(self) -> str:
        """Name of the folder in a run directory."""
        return f"{self.version:09d}"


class Owner(msgspec.Struct, frozen=True):
    """owner.json: the run that writes to the store. Of two runs the one with the greater `run_id` does.

    Attributes:
        run_id: nanoseconds since the epoch at its start, and greater than that of every run before it.
        started: the same moment, ISO 8601.
        host: name of the machine.
    """

    run_id: int
    started: str
    host: str


def digest(meta: bytes, evaluation: bytes = b"") -> str:
    """The last part of a folder's name: of meta.json and, of the best checkpoint, evaluation.json."""
    return hashlib.sha256(meta + evaluation).hexdigest()[:16]


def entries(names: Iterable[str]) -> dict[Entry, frozenset[str]]:
    """The folders of a store and the files in each. `names`: of all files, relative to the store."""
    found: dict[Entry, set[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        if match := _FOLDER.match(folder):
            kind = next(kind for kind in KINDS if kind == match["kind"])
            entry = Entry(kind, int(match["version"]), int(match["decisions"]), match["digest"])
            found.setdefault(entry, set()).add(file)
    return {entry: frozenset(files) for entry, files in found.items()}


def folder_of(url: str) -> tuple[str, Entry | None]:
    """The URL of the store and the folder that `url` names in it; (`url`, None) where it names a store."""
    *above, kind, name = url.rstrip("/").split("/")  # a URL has two slashes at least
    found = list(entries([f"{kind}/{name}/{META_FILE}"]))
    return ("/".join(above), found[0]) if found else (url, None)


def whole(found: Mapping[Entry, Collection[str]], kind: Kind) -> list[Entry]:
    """Entries of a kind that hold meta.json, the newest first."""
    return newest_first(entry for entry, files in found.items() if entry.kind == kind and META_FILE in files)


def newest_first(some: Iterable[Entry]) -> list[Entry]:
    """By version; of one version, the one that learned more first."""
    return sorted(some, key=lambda entry: (entry.version, entry.decisions, entry.digest), reverse=True)


def kept(checkpoints: Iterable[Entry], milestone_every_decisions: int) -> set[Entry]:
    """Which checkpoints stay: the newest two, and the first one at or past each multiple of so many decisions."""
    ordered = newest_first(set(checkpoints))
    stay = set(ordered[:KEEP_NEWEST])
    milestones: dict[int, Entry] = {}
    for entry in ordered:
        if passed := entry.decisions // milestone_every_decisions:
            first = milestones.setdefault(passed, entry)
            if entry.decisions <= first.decisions:
                milestones[passed] = entry
    return stay | set(milestones.values())
