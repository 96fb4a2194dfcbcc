"""Which run directories this user made on this machine: their values that name code are signed.

That the files of a run directory belong to the user proves nothing; those of an unpacked download do, too. A secret in
the user's state folder signs the values of marked keys (`simul.common.config.trust`) and the directory's resolved path.

Where the secret cannot be kept (a HOME that is read-only), one of this process and its children takes its place, in
their environment: the run works, and later commands say `--trust`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec

from simul.common.config.trust import MarkedValue, Trust
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import OTHERS, read_regular

SIGNATURE = "signature.json"
SECRET = "run-signing.key"
SECRET_VARIABLE = "SIMUL_RUN_SIGNING_SECRET"
SECRET_BYTES = 32
UNSIGNED = "the run directory has no signature of yours"
CHANGED = "its values are not those that you started the run with"


class Signature(msgspec.Struct, frozen=True):
    """signature.json: values that may be run in the run directory at `path`, and the HMAC-SHA256 of both."""

    path: str
    values: tuple[MarkedValue, ...]
    hmac: str


def sign(root: Path, values: Iterable[MarkedValue]) -> bytes:
    """Content of signature.json for the run directory `root`."""
    path, ordered = os.path.realpath(root), tuple(sorted(values))
    return msgspec.json.encode(Signature(path, ordered, _hmac(_secret_to_sign(), path, ordered)))


def trust_in(root: Path, trust: Trust) -> Trust:
    """`trust`, and what this user's signature of the run directory `root` covers."""
    signed = signed_trust(root)
    return msgspec.structs.replace(signed.and_also(trust.values), everything=trust.everything)


def signed_trust(root: Path) -> Trust:
    """Trust in the values that this user's signature of the run directory `root` holds; else the reason why in none."""
    try:
        signature = msgspec.json.decode(read_regular(root / SIGNATURE, own=True), type=Signature)
    except FileNotFoundError:
        return Trust(reason=UNSIGNED) if (root / "config.yaml").exists() else Trust()
    except (OSError, *DECODE_ERRORS):
        return Trust(reason=f"the signature {root / SIGNATURE} cannot be read")
    secrets_here, lacking = _secrets_to_verify()
    if not any(_fits(signature, secret) for secret in secrets_here):
        return Trust(reason=f"{UNSIGNED}, but one of another user or machine, or a changed one{lacking}")
    if signature.path != os.path.realpath(root):
        return Trust(reason=f"you made this run directory at {signature.path}, from where it was moved or copied")
    return Trust(values=frozenset(signature.values), reason=CHANGED)


def _fits(signature: Signature, secret: bytes) -> bool:
    return hmac.compare_digest(_hmac(secret, signature.path, signature.values).encode(), signature.hmac.encode())


def _hmac(secret: bytes, path: str, values: tuple[MarkedValue, ...]) -> str:
    return hmac.new(secret, msgspec.json.encode([path, values]), hashlib.sha256).hexdigest()


def state_folder() -> Path:
    """Where this user's secret lies. Raises RuntimeError where the user has no home."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "simul"


def _secret_to_sign() -> bytes:
    """The user's secret, which is made where there is none; else the one of this process and its children."""
    try:
        return _make_secret(state_folder())
    except (OSError, RuntimeError):
        return bytes.fromhex(os.environ.setdefault(SECRET_VARIABLE, secrets.token_hex(SECRET_BYTES)))


def _secrets_to_verify() -> tuple[list[bytes], str]:
    """The secrets, and why the user's own is not among them, as the end of a sentence."""
    found, lacking = [], ""
    try:
        found.append(_read_secret(state_folder()))
    except (OSError, RuntimeError) as error:
        lacking = f" (your secret cannot be used: {error})"
    with contextlib.suppress(KeyError, ValueError):
        found.append(bytes.fromhex(os.environ[SECRET_VARIABLE]))
    return [secret for secret in found if len(secret) == SECRET_BYTES], lacking


def _make_secret(folder: Path) -> bytes:
    """Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        return _read_secret(folder)
    aside = folder / f".{SECRET}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another process was faster: its secret counts
            os.link(aside, folder / SECRET)
    finally:
        aside.unlink(missing_ok=True)
    return _read_secret(folder)


def _read_secret(folder: Path) -> bytes:
    """Raises OSError, also where others could have read or written the secret."""
    path = folder / SECRET
    for each in (folder, path):
        _check_private(each)
    secret = read_regular(path, SECRET_BYTES, own=True)
    if len(secret) != SECRET_BYTES:
        raise PermissionError(f"{path} is damaged")
    return secret


def _check_private(path: Path) -> None:
    """Raises PermissionError unless only this user can read and write it. Windows has no such mode."""
    facts = path.stat()
    if hasattr(os, "getuid") and (facts.st_uid != os.getuid() or facts.st_mode & OTHERS):
        raise PermissionError(f"{path} is not this user's alone")
