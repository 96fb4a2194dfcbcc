"""The machines of a run: agents, the files that they need, the address book, mirrored logs, and what is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import yaml

from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.protocol.messages import Report
from simul.common.role.run_directory import ADDRESSES, KEYS, AddressBook, RunDir
from simul.common.runtime.private_files import open_to_append
from simul.common.transport import new_run_keys
from simul.launch.cluster.facts import differences, machine_facts
from simul.launch.cluster.links import AgentLink, Engine, RemoteRole
from simul.launch.cluster.messages import (
    FAILED_START,
    AgentHello,
    FromAgent,
    News,
    StartRole,
    ToAgent,
    WriteFiles,
)
from simul.launch.cluster.placement import bundle_of, bundles_of, by_machine
from simul.launch.processes.process_group import RoleDied

PLACE_LIMIT_SEC = 180.0
LACKING_AFTER_SEC = 5.0  # a bundle without a machine for so long is a sentence
POLL_SEC = 0.05
KEY_NAMES = ("supervisor", "learner", "server", "client")
# The pairs whose secret halves a role needs: its own, and that of those who connect.
SECRETS = {"learner": ("learner", "client"), "inference_server": ("server", "client"), "env_worker": ("client",)}


class Cluster:
    """Places the processes of a run on machines: `prepare`, `open`, then `launch` and `poll` until `close`.

    Attributes:
        moved: indices of the inference servers whose address has changed since the caller emptied it.
    """

    def __init__(self, engine: Engine, config: Config, run_dir: RunDir) -> None:
        check_config(config)
        self.moved: set[int] = set()
        self._engine, self._config, self._run_dir = engine, config, run_dir
        self._bundles = bundles_of(config)
        self._links: list[AgentLink] = []
        self._replaced: list[AgentLink] = []  # lost, and another one is in their place
        self._first: tuple[AgentLink, ...] = ()  # with which the run began
        self._endpoints: dict[str, str] = {}
        self._store_behind = False  # as the learner said last
        self._ask_at = 0.0  # when to look again for what has no room
        self._facts: dict[str, str] = {}  # of this machine, once those of all others are the same

    def prepare(self) -> None:
        """Make the keys of this start and the address book, before the supervisor's own socket is bound.

        The caller holds the lock of the run directory. Raises OSError.
        """
        shutil.rmtree(self._run_dir.keys, ignore_errors=True)
        new_run_keys(self._run_dir.keys, KEY_NAMES)
        self._run_dir.write_addresses(AddressBook(self._engine.host))

    def open(self, stopped: Callable[[], bool], say: Callable[[str], object]) -> None:
        """Start the agents and wait for them. `say`: gets sentences about where they are, and what has no room.

        Raises:
            ConfigError: versions or code differ between the machines; a sentence says which.
            RoleDied: not every bundle got a machine in PLACE_LIMIT_SEC, or an agent ended.
        """
        book = self._run_dir.addresses()
        self._endpoints = dict(book.endpoints) if book is not None else {}
        self._links = [AgentLink(number, bundle, self._engine) for number, bundle in enumerate(self._bundles)]
        self._first = tuple(self._links)
        deadline = time.monotonic() + PLACE_LIMIT_SEC
        while not all(link.hello is not None for link in self._links):
            for sentence in self.poll(time.monotonic()):
                say(sentence)
            if lost := next((link for link in self._links if link.lost), None):
                raise RoleDied(f"There is no agent for the {lost.bundle.title}: {lost.lost}", 1)
            if stopped():
                return
            if time.monotonic() > deadline:
                raise RoleDied(self._not_placed(), 1)
            time.sleep(POLL_SEC)
        self._check_facts()
        say(f"placed: {by_machine({link.bundle.title: link.node for link in self._links})}")

    def launch(self, role: str, index: int, threads: int, arguments: Sequence[str]) -> RemoteRole:
        """Start a role process on the machine of its bundle; on another one where that is lost, once there is one."""
        number = bundle_of(self._bundles, (role, index))
        if self._links[number].lost:
            self._lose_roles(self._links[number])  # of one that was lost since the last `poll`
            self._links[number].drop()
            self._replaced.append(self._links[number])
            self._links[number] = AgentLink(number, self._bundles[number], self._engine)
        link = self._links[number]
        child = RemoteRole(role, index, self._run_dir, link, threads, arguments)
        child.node = link.node
        if link.hello is not None:
            self._start_or_end(child, link.hello)
        return child

    def poll(self, now: float) -> list[str]:
        """Take in what the agents sent. Returns sentences for the view, about machines that are lost or found."""
        sentences = []
        for link in self._links:
            if link.lost and not link.roles:
                continue
            for message in link.poll(now, self._config.cluster.placement.lost_after_sec):
                sentences += self._on_message(link, message)
            if link.lost:
                sentences += self._on_lost(link)
        return sentences + self._lacking(now)

    def note_report(self, report: Report) -> None:
        """Take the endpoints of a process into the address book, and tell all machines where they are new."""
        if report.role == "learner" and "store_behind_sec" in report.metrics:
            self._store_behind = bool(report.metrics["store_behind_sec"])
        new = {name: at for name, at in report.endpoints.items() if self._endpoints.get(name) != at}
        if not new:
            return
        self.moved |= {int(name.removeprefix("own-")) for name in new.keys() & self._endpoints.keys() if "own-" in name}
        self._endpoints |= new
        with contextlib.suppress(OSError):  # of a full disk: only commands of this machine lack it
            self._run_dir.write_addresses(AddressBook(self._engine.host, self._endpoints))
        for link in self._links:
            if link.hello is not None:
                link.send(WriteFiles(files={ADDRESSES: self._book_of(link)}))

    def close(self) -> list[str]:
        """End all agents and what they have started. Returns a sentence about checkpoints that the store lacks."""
        kept = [link for link in self._links if link.bundle.role == "learner" and self._store_behind and link.hello]
        for link in self._links:
            link.leave(remove=link not in kept)
        for link in self._links + self._replaced:
            link.close()
        self._links, self._replaced = [], []
        self._engine.close()
        with contextlib.suppress(OSError):
            self._run_dir.remove_addresses()
        return [
            f"the store lacks the last checkpoints: they stay on {link.node}, in kept-{Path(link.hello.root).name} of "
            "its temporary folder"
            for link in kept
            if link.hello is not None
        ]

    def _not_placed(self) -> str:
        if lacking := self._engine.lacking([number for number, link in enumerate(self._links) if not link.node]):
            return f"Within {PLACE_LIMIT_SEC:.0f} s no machine had room for {lacking}"
        silent = ", ".join(link.bundle.title for link in self._links if link.hello is None)
        return (
            f"The agents of {silent} said nothing within {PLACE_LIMIT_SEC:.0f} s, although there is room for them. "
            "`ray status` and the logs of Ray on those machines say why."
        )

    def _lacking(self, now: float) -> list[str]:
        """A sentence about bundles that have waited for a machine for LACKING_AFTER_SEC, once for each wait."""
        waiting = {
            number: link for number, link in enumerate(self._links)
            if not link.node and not link.lost and (link.roles or not self._facts)
        }  # fmt: skip
        late = any(now - link.began >= LACKING_AFTER_SEC and not link.lacking_said for link in waiting.values())
        if not late or now < self._ask_at:
            return []
        self._ask_at = now + LACKING_AFTER_SEC
        lacking = self._engine.lacking(list(waiting))
        for link in waiting.values():
            link.lacking_said = link.lacking_said or bool(lacking)
        return [f"the run waits for machines; none has room for {lacking}"] if lacking else []

    def _on_message(self, link: AgentLink, message: FromAgent) -> list[str]:
        if isinstance(message, AgentHello):
            if self._facts and (found := differences({"this machine": self._facts, link.node: message.facts})):
                link.lost = f"{'; '.join(found)}. Install the same versions there"
                return []
            for child in list(link.roles.values()):
                child.node = link.node
                self._start_or_end(child, message)
            return [f"{link.bundle.title} placed again on {link.node}"] if link.roles else []
        self._on_news(link, message)
        return []

    def _on_news(self, link: AgentLink, news: News) -> None:
        for name, data in news.logs:
            self._append_to_log(name, data)
        for run_id, (pid, started_at) in news.started.items():
            if (child := link.roles.get(run_id)) is not None and link.hello is not None:
                child.pid, child.started_at, child.machine = pid, started_at, link.hello.machine
                child.fetching = False
                link.prepared = True
                self._start_held(link, link.hello)
        for run_id, usage in news.usage.items():
            if (child := link.roles.get(run_id)) is not None:
                child.usage = usage
        for run_id, code in news.exits.items():
            if (child := link.roles.get(run_id)) is not None:
                child.end(code)

    def _on_lost(self, link: AgentLink) -> list[str]:
        self._lose_roles(link)
        link.drop()
        return [f"{link.node or 'its machine'} ({link.bundle.title}) is lost: {link.lost}"]

    def _lose_roles(self, link: AgentLink) -> None:
        for child in list(link.roles.values()):
            child.lose(f"{link.node or 'its machine'} is lost")

    def _start_held(self, link: AgentLink, hello: AgentHello) -> None:
        for child in list(link.roles.values()):
            if child.held:
                child.held = child.fetching = False
                self._start_or_end(child, hello)

    def _start_or_end(self, child: RemoteRole, hello: AgentHello) -> None:
        """`_start`; where a file of the run cannot be read, the process counts as one that could not be started."""
        try:
            self._start(child, hello)
        except OSError as error:
            child.end(FAILED_START, f"{error.filename} cannot be read: {error.strerror}")
        except ConfigError as error:
            child.end(FAILED_START, str(error).removesuffix("."))

    def _start(self, child: RemoteRole, hello: AgentHello) -> None:
        """Send what the process needs, and start it.

        A learner fetches first, until that has succeeded once. Its first rank does so for all ranks; they wait.
        """
        root, link = Path(hello.root), child.link
        first: tuple[str, ...] = ()
        if child.role == "learner" and self._config.store and not link.prepared:
            child.fetching, child.held = True, child.index > 0
            if child.held:
                return
            first = self._fetch_arguments(root, resumes=link not in self._first)
        messages: list[ToAgent] = [
            WriteFiles(files=self._files(child.role, link, root)),
            StartRole(
                role=child.role, index=child.index, run_id=child.run_id, threads=child.threads,
                arguments=child.arguments, first=first,
            ),
        ]  # fmt: skip
        for message in messages:
            link.send(message)

    def _fetch_arguments(self, root: Path, *, resumes: bool) -> tuple[str, ...]:
        flags = {"--past": self._config.opponents.past > 0, "--resumes": resumes}
        fingerprint = self._run_dir.read_spec().fingerprint()
        return (
            "simul.common.store", "--url", self._config.store, "--run-dir", str(root),
            "--spec-fingerprint", fingerprint, *(flag for flag, given in flags.items() if given),
        )  # fmt: skip

    def _files(self, role: str, link: AgentLink, root: Path) -> dict[str, bytes]:
        config = msgspec.structs.replace(self._run_dir.read_config(), run_dir=str(root))
        read = {name: (self._run_dir.root / name).read_bytes() for name in ("spec.json", "token")}
        keys = [f"{name}.key" for name in KEY_NAMES] + [f"{name}.key_secret" for name in SECRETS[role]]
        allowed = [f"allowed/{path.name}" for path in (self._run_dir.keys / "allowed").glob("*.key")]
        return {
            "config.yaml": yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False).encode(),
            ADDRESSES: self._book_of(link),
            **read,
            **{f"{KEYS}/{name}": (self._run_dir.keys / name).read_bytes() for name in (*keys, *allowed)},
        }

    def _book_of(self, link: AgentLink) -> bytes:
        return msgspec.json.encode(AddressBook(link.host, self._endpoints))

    def _append_to_log(self, name: str, data: bytes) -> None:
        if Path(name).name != name or not name.endswith(".log"):
            return
        with contextlib.suppress(OSError), os.fdopen(open_to_append(self._run_dir.logs / name), "ab") as file:
            file.write(data)

    def _check_facts(self) -> None:
        own = machine_facts()
        facts = {"this machine": own}
        facts |= {link.node: link.hello.facts for link in self._links if link.hello is not None}
        if found := differences(facts):
            raise ConfigError(
                f"The machines of the cluster do not have the same versions: {'; '.join(found)}. Install the same ones "
                "on all of them, and start again."
            )
        self._facts = own


def check_config(config: Config) -> None:
    """Raises ConfigError for settings that a run on several machines does not have."""
    if not config.store:
        raise ConfigError(
            "A run on several machines keeps its checkpoints in a store, from which the learner resumes on another "
            "machine: set store to a URL that all machines reach, such as --set store=s3://bucket/run."
        )
    if config.server.endpoint or config.server.curve_keys:
        raise ConfigError(
            "server.endpoint and server.curve_keys are for runs on one machine: one on several makes its own endpoints "
            "and keys. Leave them out; for agents of others run `simul serve` with a checkpoint of the store."
        )
    if config.opponents.frozen:
        raise ConfigError(
            "opponents.frozen is for runs on one machine: its checkpoint is copied into the run directory there. Leave "
            "opponents.frozen and opponents.checkpoint out."
        )
    if config.evaluation.every_decisions:
        raise ConfigError(
            "evaluation.every_decisions reads checkpoints on the machine of the supervisor, and those of a run on "
            "several machines are in its store. Set it to 0, and run `simul eval --checkpoint URL` beside the run."
        )
