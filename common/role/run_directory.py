"""The directory of one run, its files, sockets and token. Roles start with `--run-dir` and find the rest here."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from simul.common.checkpoints.folders import BEST, NEW_BEST
from simul.common.config.loader import load_config
from simul.common.config.run_signature import SIGNATURE, sign, trust_in
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, MarkedValue, Trust, check_trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.private_files import (
    OTHERS,
    OTHERS_WRITE,
    check_private_folder,
    is_private_folder,
    make_private_folder,
    open_regular,
    read_regular,
    replace_file,
)
from simul.common.transport import ClientKeys, ServerKeys, client_keys, connectable, server_keys

IPC_PATH_LIMIT = 90  # libzmq takes 107 bytes; leave room for the socket's name
STORE_CLAIM = "store.json"  # which start of the run writes to its store
SOCKETS_FILE = "sockets-folder"  # path of the sockets that lie elsewhere
SOCKETS_KIND = "simul-sockets-"  # prefix of their folder, in the temporary folder
SOCKETS_OWNER = "run-directory"  # in that folder: path of the run directory that they are of
FILES = (
    "config.yaml", "spec.json", "token", "status.json", "summary.json", "supervisor.pid", "curves.csv", "origin",
    STORE_CLAIM, SIGNATURE, SOCKETS_FILE,
)  # fmt: skip
START_FILES = ("config.yaml", SIGNATURE, "spec.json")  # what a start writes
SOCKETS = "sockets"
MAX_PATH_BYTES = 4096
TCP_BASE_PORT = 17650  # where ipc does not exist (Windows)
ADDRESSES = "addresses.json"
KEYS = "keys"
BOUND_BY = {"status": "supervisor", "unrolls": "learner", "weights": "learner", "own": "server", "control": "server"}


class AddressBook(msgspec.Struct, frozen=True):
    """addresses.json: where the processes of a run on several machines are. On one machine there is no such file."""

    host: str  # address of this machine, at which its processes bind
    endpoints: dict[str, str] = {}  # tcp endpoints of the run, by `address_name`


# Made here: msgspec may not meet a new type in two threads at once.
_ADDRESS_BOOK = msgspec.json.Decoder(AddressBook)
_SPEC = msgspec.json.Decoder(GameSpec)
_CONFIG = msgspec.json.Decoder(Config)  # what `msgspec.convert` knows too


def address_name(name: str, index: int = 0) -> str:
    """The name of a socket in the address book: `weights`, `unrolls-0`, `own-1`. `index`: see `RunDir.endpoint`."""
    return f"{name}-{index}" if name == "unrolls" or BOUND_BY[name] == "server" else name


class RunDir:
    """Paths and small files of a run: config.yaml, spec.json, token, checkpoints/, logs/, status.json, summary.json."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        self._made: list[Path] = []  # by `create`
        self._mode = 0o700  # of its folders

    @property
    def checkpoints(self) -> Path:
        """Directory of checkpoints."""
        return self.root / "checkpoints"

    @property
    def logs(self) -> Path:
        """Directory of the log files, one per role."""
        return self.root / "logs"

    def exists(self) -> bool:
        """True if the directory exists; False for an impossible name, for which Path.exists raises."""
        return os.path.exists(self.root)

    def has_started(self) -> bool:
        """True if a run was started here, whose configuration and spec are kept."""
        return all((self.root / name).exists() for name in ("config.yaml", "spec.json"))

    def create(self, access: Literal["owner", "group"] = "owner") -> None:
        """Create the directories and the training token. Raises ConfigError.

        `access`: who may read them, the sockets and the token aside; `run_dir_access` of the configuration.
        """
        self._mode = 0o750 if access == "group" else 0o700
        self._check_name()
        self._check_kinds()
        parts = (self.root, self.checkpoints, self.logs, self.root / SOCKETS, self.root / "token")
        self._made = [path for path in parts if not os.path.lexists(path)]
        try:
            for folder in self.make_folders():
                self._keep_from_others(folder, self._mode if access == "group" else 0)
            self._make_sockets()
            if not self._has_private_token():
                self._make_token()
        except OSError as error:
            self.undo_create()
            raise ConfigError(
                f"The run directory {self.root} cannot be written: {error.strerror}. "
                "Choose another one with --run-dir, or fix its permissions."
            ) from None

    def make_folders(self) -> tuple[Path, ...]:
        """Make those that are missing, with the access that `create` was given; returns all. Raises OSError."""
        folders = (self.root, self.checkpoints, self.logs)
        for folder in folders:
            folder.mkdir(mode=self._mode, parents=True, exist_ok=True)
        return folders

    @staticmethod
    def _keep_from_others(folder: Path, also: int) -> None:
        """Only this user may write there. `also`: permissions to add. Raises ConfigError: it is another user's."""
        found = folder.stat()
        if sys.platform != "win32" and found.st_uid != os.geteuid():
            raise ConfigError(
                f"{folder} belongs to another user, who could read the token and change what is run. Choose another "
                "--run-dir."
            )
        mode = stat.S_IMODE(found.st_mode)
        if (wanted := (mode | also) & ~OTHERS_WRITE) != mode:
            folder.chmod(wanted)

    def _has_private_token(self) -> bool:
        """Whether there is a token that no other user made or may read. An empty one is left to `repair`."""
        try:
            found = (self.root / "token").lstat()
        except FileNotFoundError:
            return False
        own = sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & OTHERS)
        return stat.S_ISREG(found.st_mode) and (own or not found.st_size)

    def _check_name(self) -> None:
        """Raises ConfigError for a name that is not UTF-8: an endpoint, and the run's config.yaml, are text."""
        try:
            str(self.root).encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"The path of the run directory is not UTF-8 text: {os.fsencode(self.root)!r}. Choose another one with "
                "--run-dir."
            ) from None

    def _check_kinds(self) -> None:
        """Raises ConfigError for a folder, device or FIFO at the path of a file, or a file at the path of a folder.

        Also for a folder that is a link: what a run writes and removes there would be elsewhere, and the directory may
        be an unpacked one of others. Links at the path of a file are replaced, or refused by who opens them.
        """
        if (link := next(self._linked_folders(), None)) is not None:
            raise ConfigError(
                f"{link} is a link to another folder, {os.path.realpath(link)}, where the run would write and remove "
                "files. Replace it by a folder, or choose another --run-dir (the run directory itself may be a link)."
            )
        for folder in (self.root, self.checkpoints, self.logs, self.root / SOCKETS):
            if os.path.exists(folder) and not os.path.isdir(folder):
                raise ConfigError(f"{folder} is a file; expected a folder. Move it away, or choose another --run-dir.")
        for file in (*(self.root / name for name in FILES), *self._log_files()):
            if os.path.exists(file) and not os.path.isfile(file):
                what = "a folder" if os.path.isdir(file) else "not a regular file"
                raise ConfigError(f"{file} is {what}; expected a file. Move it away, or choose another --run-dir.")

    def _linked_folders(self) -> Iterator[Path]:
        """Links to folders in the run directory and its checkpoints, except those that Simul makes, to the best one."""
        own = (self.checkpoints / BEST, self.checkpoints / NEW_BEST)
        for folder in (self.root, self.checkpoints):
            with contextlib.suppress(OSError):
                yield from (
                    path for path in sorted(folder.iterdir())
                    if path.is_symlink() and path.is_dir() and path not in own
                )  # fmt: skip

    def _log_files(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return [self.logs / name for name in os.listdir(self.logs) if name.endswith(".log")]
        return []

    def undo_create(self) -> None:
        """Remove what `create` has made, and what lies in it; what was there before stays."""
        for path in reversed(self._made):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._made.clear()

    def remove(self) -> None:
        """Remove the directory; what cannot be removed stays."""
        self.remove_sockets()
        shutil.rmtree(self.root, ignore_errors=True)

    def remove_sockets(self) -> None:
        """Remove the sockets and their locks, after all roles have stopped."""
        with contextlib.suppress(OSError, ConfigError):  # none, or not of this user
            sockets = self.sockets
            check_private_folder(sockets)
            shutil.rmtree(sockets, ignore_errors=True)
            (self.root / SOCKETS_FILE).unlink(missing_ok=True)

    def endpoint(self, name: str, index: int = 0) -> str:
        """ZeroMQ endpoint at which to reach the socket called `name`: data, own, unrolls, weights, status or control.

        `index`: of the inference server, each of which has data, own and control, or rank of the learner, each of which
        has unrolls; the others exist once.
        On several machines it is the one in the address book, except for data. Raises ConfigError.
        """
        if name in BOUND_BY and (book := self.addresses()) is not None:
            return self._listed(book, address_name(name, index))
        return self.local_endpoint(name, index)

    def local_endpoint(self, name: str, index: int = 0) -> str:
        """`endpoint` for processes of this machine, also where the run has others on several machines."""
        if sys.platform == "win32":
            names = ("data", "unrolls", "weights", "status", "control")
            return f"tcp://127.0.0.1:{TCP_BASE_PORT + len(names) * index + names.index(name)}"
        return f"ipc://{self.sockets / name}{f'-{index}' if index else ''}.ipc"

    def addresses(self) -> AddressBook | None:
        """The address book of a run on several machines; None on one machine. Raises ConfigError."""
        try:
            return _ADDRESS_BOOK.decode(self._read(ADDRESSES))
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"The addresses of the run, {self.root / ADDRESSES}, cannot be read: {error}.") from None

    def write_addresses(self, book: AddressBook) -> None:
        """Write the address book. Raises OSError."""
        self.write(ADDRESSES, msgspec.json.encode(book), mode=0o600)

    def remove_addresses(self) -> None:
        """Remove the address book and, where there is one, the keys of the same start. Raises OSError."""
        if (self.root / ADDRESSES).exists():  # without it a folder `keys` may be the user's
            shutil.rmtree(self.keys, ignore_errors=True)
            (self.root / ADDRESSES).unlink()

    @property
    def keys(self) -> Path:
        """Directory of the CURVE keys of a run on several machines."""
        return self.root / KEYS

    def keys_to_connect(self, name: str) -> ClientKeys | None:
        """Keys for `endpoint(name)`; None on one machine, where sockets have none. Raises ConfigError."""
        return None if self.addresses() is None else client_keys(self.keys, server=BOUND_BY[name])

    def keys_to_bind(self, name: str) -> ServerKeys | None:
        """Keys of the process that binds the socket `name`; None on one machine. Raises ConfigError."""
        return None if self.addresses() is None else server_keys(self.keys, BOUND_BY[name])

    def _listed(self, book: AddressBook, name: str) -> str:
        if name not in book.endpoints:
            raise ConfigError(f"{self.root / ADDRESSES} has no address of {name}: its process has not reported one.")
        return book.endpoints[name]

    def own_endpoint(self, configured: str, server: int = 0) -> str:
        """The endpoint at which processes of this run reach a server, past the proxy for other clients.

        `configured`: server.endpoint of that server. Without ipc (Windows) there is no proxy and one endpoint for all
        clients. On several machines: the one in the address book.
        """
        if self.addresses() is not None:
            return self.endpoint("own", server)
        if sys.platform == "win32":
            return connectable(configured) or self.endpoint("data", server)
        return self.endpoint("own", server)

    def token(self) -> str:
        """The run's training token, without which no client's sessions are learned from. Raises ConfigError."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if token := self._read("token").decode().strip():
                return token
        raise ConfigError(
            f"The run's token {self.root / 'token'} is missing, unreadable or empty. Start the run again: it makes one."
        )

    def _make_token(self) -> None:
        self.write("token", os.urandom(16).hex().encode(), mode=0o600)

    def _read(self, name: str) -> bytes:
        """A small file, which others may have put there. Raises OSError."""
        return read_regular(self.root / name)

    def write(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Write a small file atomically: a reader never sees a part of it, and a full disk leaves the old one.

        `mode` applies to the new file, before the umask. Raises OSError.
        """
        replace_file(self.root / name, data, mode=mode)

    def repair(self) -> list[str]:
        """Remove what a killed start or run or a full disk left behind; no role may be running here.

        Returns a sentence for each empty or damaged file. The run writes them again while it starts or stops; the token
        is made at once. Raises OSError.
        """
        for name in FILES:
            for left in self.root.glob(f".{name}.[0-9]*"):
                left.unlink(missing_ok=True)
        damaged = [name for name in FILES if (self.root / name).exists() and not self._readable(name)]
        if "token" in damaged:
            self._make_token()
        return [f"{self.root / name} was empty or damaged, as after a full disk; written again" for name in damaged]

    def _readable(self, name: str) -> bool:
        try:
            if name.endswith(".json"):
                return isinstance(msgspec.json.decode(self._read(name)), dict)
            if name.endswith(".yaml"):
                return isinstance(yaml.safe_load(self._read(name)), dict)
            with os.fdopen(open_regular(self.root / name), "rb") as file:
                return bool(file.read(MAX_PATH_BYTES).strip())
        except (OSError, ValueError, yaml.YAMLError):
            return False

    def write_config(self, config: Config, also: Iterable[MarkedValue] = ()) -> None:
        """Write the resolved configuration as config.yaml, and sign what it names to run: the caller trusts it.

        `also`: further values that may be run here, such as the networks of checkpoints.
        """
        text = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False)
        self.write("config.yaml", text.encode())
        if values := values_to_trust(config).union(also):
            self.write(SIGNATURE, sign(self.root, values), mode=0o600)
        else:
            (self.root / SIGNATURE).unlink(missing_ok=True)

    def read_config(self) -> Config:
        """The resolved configuration, to look at; `read_trusted_config` where what it names is run.

        Raises ConfigError: it is missing or damaged, or of another version; every key at fault is named.
        """
        path = self.root / "config.yaml"
        try:
            return msgspec.convert(yaml.safe_load(self._read("config.yaml")), _CONFIG.type)
        except OSError as error:
            raise ConfigError(f"The configuration of the run, {path}, cannot be read: {error.strerror}.") from None
        except (ValueError, TypeError, RecursionError, yaml.YAMLError):
            return load_config(path)

    def read_trusted_config(self, trust: Trust = NOTHING) -> tuple[Config, Trust]:
        """The resolved configuration, and the trust with which what it names may be run.

        `trust`: what the command line trusts, beside the signature. Raises ConfigError where something is not trusted.
        """
        config = self.read_config()
        known = trust_in(self.root, trust)
        check_trust(values_to_trust(config), known, str(self.root / "config.yaml"))
        return config, known

    def read_start_files(self) -> dict[str, bytes]:
        """Contents of config.yaml, its signature and spec.json of the last start, by name; empty in a new directory."""
        return {name: self._read(name) for name in START_FILES if (self.root / name).exists()}

    def restore_start_files(self, files: Mapping[str, bytes]) -> None:
        """Write back files of a start, such as `read_start_files` returns; the token and the signature are private."""
        for name, content in files.items():
            self.write(name, content, mode=0o600 if name in ("token", SIGNATURE) else 0o666)

    def undo_start_files(self, before: Mapping[str, bytes]) -> None:
        """Make them what `read_start_files` returned `before` a start that was refused. Raises OSError."""
        self.restore_start_files(before)
        for name in START_FILES:
            if name not in before:
                (self.root / name).unlink(missing_ok=True)

    def write_spec(self, spec: GameSpec) -> None:
        """Write the game spec as spec.json."""
        self.write("spec.json", msgspec.json.encode(spec))

    def read_spec(self) -> GameSpec:
        """The game spec. Raises ConfigError: it is missing or damaged."""
        path = self.root / "spec.json"
        try:
            return _SPEC.decode(self._read("spec.json"))
        except OSError as error:
            raise ConfigError(f"The game spec of the run, {path}, cannot be read: {error.strerror}.") from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"The game spec of the run, {path}, is damaged: {error}. Start the run again: it writes the file."
            ) from None

    def write_origin(self, origin: str) -> None:
        """Write the `--from` option that the run began with; empty: none."""
        if origin:
            self.write("origin", origin.encode())
        else:
            (self.root / "origin").unlink(missing_ok=True)

    def read_origin(self) -> str:
        """The `--from` option that the run began with; empty: none."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._read("origin").decode()
        return ""

    @property
    def sockets(self) -> Path:
        """Directory of the sockets: inside, or in the temporary folder where the path would be too long for ipc.

        Raises ConfigError where the one in the temporary folder was not made yet, or others may enter it.
        """
        if self._holds_sockets:
            return self.root / SOCKETS
        folder = self._recorded_sockets()
        if folder is None:
            raise ConfigError(f"{self.root} has no folder for sockets: no run was started there.")
        if folder.exists():
            check_private_folder(folder)
        return folder

    @property
    def _holds_sockets(self) -> bool:
        return len(str(self.root / SOCKETS)) <= IPC_PATH_LIMIT

    def _make_sockets(self) -> None:
        """Make the directory of the sockets, or take the one of the last start. Raises ConfigError, OSError."""
        if self._holds_sockets:
            make_private_folder(self.root / SOCKETS)
            for path in (self.root / SOCKETS).iterdir():
                if path.is_symlink():  # Simul makes none there, and what opens locks and FileStores may follow one
                    path.unlink()
            return
        folder = self._recorded_sockets()
        if folder is None or not folder.exists() or not is_private_folder(folder):
            folder = Path(tempfile.mkdtemp(prefix=self._sockets_prefix))
        # Also in the former folder: its time is new again, and no other process removes it as left over.
        replace_file(folder / SOCKETS_OWNER, os.fsencode(self.root), mode=0o600)
        if folder != self._recorded_sockets():
            self.write(SOCKETS_FILE, str(folder).encode(), mode=0o600)

    def _recorded_sockets(self) -> Path | None:
        """The folder in the temporary folder. Its name must have this directory's hash: others may write the file."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            folder = Path(read_regular(self.root / SOCKETS_FILE, MAX_PATH_BYTES).decode())
            if folder.is_absolute() and ".." not in folder.parts and folder.name.startswith(self._sockets_prefix):
                return folder
        return None

    @property
    def _sockets_prefix(self) -> str:
        return f"{SOCKETS_KIND}{hashlib.sha256(str(self.root).encode()).hexdigest()[:16]}-"


def is_run_token(shown: str, token: str) -> bool:
    """True if `shown` is the run's `token`, compared in constant time. False for a run without a token."""
    return bool(token) and hmac.compare_digest(shown.encode(), token.encode())
