"""Where everything of one run lies. Roles are started with `--run-dir` and find the rest here."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from simul.common.config.schema import Config
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.transport import connectable

IPC_PATH_LIMIT = 90  # libzmq takes 107 bytes; leave room for the socket's name
FILES = ("config.yaml", "spec.json", "token", "status.json", "summary.json", "supervisor.pid", "learner.csv", "origin")
TCP_BASE_PORT = 17650  # where ipc does not exist (Windows)


class RunDir:
    """Paths and small files of a run: config.yaml, spec.json, token, checkpoints/, logs/, status.json, summary.json."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()

    @property
    def checkpoints(self) -> Path:
        """Directory of checkpoints."""
        return self.root / "checkpoints"

    @property
    def logs(self) -> Path:
        """Directory of one log file a role."""
        return self.root / "logs"

    def exists(self) -> bool:
        """Whether the directory is there; False for a name that no directory can have, where Path.exists raises."""
        return os.path.exists(self.root)

    def create(self) -> None:
        """Make the directories and the training token. Raises ConfigError where that is not possible."""
        self._check_kinds()
        try:
            for folder in (self.root, self.checkpoints, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
            self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.root / "token").exists():
                self._make_token()
        except OSError as error:
            raise ConfigError(
                f"The run directory {self.root} cannot be written: {error.strerror}. "
                "Choose another one with --run-dir, or mend its permissions."
            ) from None

    def _check_kinds(self) -> None:
        """Raises ConfigError where a folder stands in the place of a file, or a file in that of a folder."""
        for folder in (self.root, self.checkpoints, self.logs, self.sockets):
            if os.path.exists(folder) and not os.path.isdir(folder):
                raise ConfigError(f"{folder} is a file; expected a folder. Move it away, or choose another --run-dir.")
        for name in FILES:
            if os.path.isdir(self.root / name):
                raise ConfigError(
                    f"{self.root / name} is a folder; expected a file. Move it away, or choose another --run-dir."
                )

    def remove(self) -> None:
        """Remove it with all that is in it; what cannot be removed stays."""
        shutil.rmtree(self.sockets, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def remove_sockets(self) -> None:
        """Remove the sockets and their locks, inside or elsewhere. Nobody listens there any more."""
        shutil.rmtree(self.sockets, ignore_errors=True)

    def endpoint(self, name: str) -> str:
        """ZeroMQ endpoint of the socket called `name`: data, own, unrolls, weights, status or control."""
        if sys.platform == "win32":
            return f"tcp://127.0.0.1:{TCP_BASE_PORT + ('data', 'unrolls', 'weights', 'status', 'control').index(name)}"
        return f"ipc://{self.sockets / name}.ipc"

    def own_endpoint(self, configured: str) -> str:
        """Where processes of this run reach the server: past the proxy, which takes in everybody else.

        `configured`: server.endpoint. Without ipc (Windows) there is no proxy, and one endpoint for all.
        """
        if sys.platform == "win32":
            return connectable(configured) or self.endpoint("data")
        return self.endpoint("own")

    def token(self) -> str:
        """The run's training token: only clients that hold it may be learned from. Raises ConfigError."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if token := (self.root / "token").read_text().strip():
                return token
        raise ConfigError(
            f"The run's token {self.root / 'token'} is missing, unreadable or empty. Start the run again: it makes one."
        )

    def _make_token(self) -> None:
        self.write("token", os.urandom(16).hex().encode(), mode=0o600)

    def write(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Write a small file so that a reader never sees half of it, and a full disk leaves the old one.

        `mode` is that of the new file, before the umask. Raises OSError.
        """
        aside = self.root / f".{name}.{os.getpid()}"
        try:
            aside.unlink(missing_ok=True)
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(data)
            aside.replace(self.root / name)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise

    def repair(self) -> list[str]:
        """Clear away what a start or a run left that was killed or had no room; nothing may run here.

        Returns a sentence for each file that is empty or damaged. All of them are written anew while the run starts or
        stops; the token is made at once. Raises OSError.
        """
        for name in FILES:
            for left in self.root.glob(f".{name}.[0-9]*"):
                left.unlink(missing_ok=True)
        damaged = [name for name in FILES if (self.root / name).exists() and not self._readable(name)]
        if "token" in damaged:
            self._make_token()
        return [f"{self.root / name} was empty or damaged, as a full disk leaves it: made anew" for name in damaged]

    def _readable(self, name: str) -> bool:
        try:
            data = (self.root / name).read_bytes()
            if name.endswith(".json"):
                return isinstance(msgspec.json.decode(data), dict)
            return isinstance(yaml.safe_load(data), dict) if name.endswith(".yaml") else bool(data.strip())
        except (OSError, ValueError, yaml.YAMLError):
            return False

    def write_config(self, config: Config) -> None:
        """Write the resolved configuration as config.yaml."""
        text = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False)
        self.write("config.yaml", text.encode())

    def read_config(self) -> Config:
        """The resolved configuration."""
        return msgspec.convert(yaml.safe_load((self.root / "config.yaml").read_text()), Config)

    def read_start_files(self) -> dict[str, bytes]:
        """The configuration and game spec of the last start, by file name; empty in a new directory."""
        files = (self.root / name for name in ("config.yaml", "spec.json"))
        return {file.name: file.read_bytes() for file in files if file.exists()}

    def restore_start_files(self, files: Mapping[str, bytes]) -> None:
        """Write back what `read_start_files` found."""
        for name, content in files.items():
            self.write(name, content, mode=0o600 if name == "token" else 0o666)

    def write_spec(self, spec: GameSpec) -> None:
        """Write the game spec as spec.json."""
        self.write("spec.json", msgspec.json.encode(spec))

    def read_spec(self) -> GameSpec:
        """The game spec."""
        return msgspec.json.decode((self.root / "spec.json").read_bytes(), type=GameSpec)

    def write_origin(self, origin: str) -> None:
        """Note what `--from` said when the run began; empty: it begins anew."""
        if origin:
            self.write("origin", origin.encode())
        else:
            (self.root / "origin").unlink(missing_ok=True)

    def read_origin(self) -> str:
        """What `--from` said when the run began; empty where it was not given."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (self.root / "origin").read_text()
        return ""

    @property
    def sockets(self) -> Path:
        """Directory of the sockets: inside, or beside other temporary files where the path would be too long."""
        inside = self.root / "sockets"
        if len(str(inside)) <= IPC_PATH_LIMIT:
            return inside
        name = hashlib.sha256(str(self.root).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"simul-{os.getuid()}-{name}"


def is_run_token(shown: str, token: str) -> bool:
    """Compare in constant time. A run without a token trusts no process."""
    return bool(token) and hmac.compare_digest(shown.encode(), token.encode())
