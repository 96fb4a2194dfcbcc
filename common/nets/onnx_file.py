"""`python -m simul.common.nets.onnx_file CHECKPOINT FILE`: a policy as one ONNX file, which answers without Simul.

What `simul export` starts. The file holds weights in float32, and no code. It is compared with the policy before it
appears, and never read back.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import signal
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from simul.common.errors import CheckpointError, ConfigError
from simul.common.nets.io import Policy, load_policy
from simul.common.protocol.specs import random_observations
from simul.common.runtime.extras import install_extra
from simul.common.runtime.private_files import replace_file
from simul.common.runtime.terminal_text import LINES, print_text, printable

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
INPUTS, OUTPUTS = ("observation", "mask", "state"), ("logits", "value", "new_state")
COMPARED_ROWS = 16
# Of an answer, as a share of the largest of its output or of 1: sums in another order. A policy that is right may come
# near 1e-5: zoo:blokus_duo, at observations that no game gives, differs by 1.1e-5.
MOST_DIFFERENCE = 1e-4
REFUSED, INTERRUPTED = 2, 130


def write_onnx(policy: Policy, path: Path) -> float:
    """Write the policy to `path`; returns the greatest difference of answers to random observations.

    Inputs: observation, wire dtype [B, D]; mask bool [B, A], True = legal; state float32 [B, S], zeros before a
    session's first decision. Outputs: logits float32 [B, A], -inf where the mask has False; value float32 [B];
    new_state float32 [B, S]. B is free.

    Raises ConfigError: packages are missing, the network cannot be exported, or the file answers otherwise. OSError.
    """
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise ConfigError(f"ONNX needs {', '.join(missing)}, not installed. Run: {install_extra('export')}")
    rows = _random_rows(policy)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.onnx"
        try:
            _export(policy, rows, file)
        except Exception as error:  # noqa: BLE001 - the exporter, and a user's network in it, may raise anything
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ConfigError(f"The network {policy.meta.network.name} cannot be exported: {said[0]}") from None
        difference = _difference(policy, rows, file)
        if not difference <= MOST_DIFFERENCE:
            raise ConfigError(
                f"The file would answer otherwise than the policy, by {difference:.2g} where at most "
                f"{MOST_DIFFERENCE:g} is expected. Nothing was written."
            )
        replace_file(path, file.read_bytes())
    return difference


def _random_rows(policy: Policy) -> tuple[torch.Tensor, ...]:
    spec, draw = policy.spec, np.random.default_rng(0)
    mask = draw.random((COMPARED_ROWS, spec.num_actions)) < 0.5
    mask[:, 0] = True
    state = draw.standard_normal((COMPARED_ROWS, policy.network.state_size)) / 10
    arrays = random_observations(spec, COMPARED_ROWS, draw), mask, state.astype(np.float32)
    return tuple(torch.from_numpy(array) for array in arrays)


def _export(policy: Policy, rows: tuple[torch.Tensor, ...], file: Path) -> None:
    batch = torch.export.Dim("batch", min=1)
    said = io.StringIO()  # what the exporter prints of its steps
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                policy, rows, dynamo=True, input_names=list(INPUTS), output_names=list(OUTPUTS),
                dynamic_shapes={name: {0: batch} for name in INPUTS}, verbose=False,
            )  # fmt: skip
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)
    assert program is not None
    meta, spec = policy.meta, policy.spec
    program.model.metadata_props["simul"] = json.dumps(
        {
            "game": spec.name, "encoder_version": spec.encoder_version, "spec": spec.fingerprint(),
            "seats": spec.seats, "network": meta.network.name, "policy_version": meta.version,
            "decisions": meta.decisions,
        }
    )  # fmt: skip
    program.save(file, external_data=False)


def _difference(policy: Policy, rows: tuple[torch.Tensor, ...], file: Path) -> float:
    """Of all rows at once and of the first one alone; infinite where a -inf is not one."""
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    greatest = 0.0
    for count in (COMPARED_ROWS, 1):
        some = [each[:count] for each in rows]
        found = session.run(list(OUTPUTS), {name: each.numpy() for name, each in zip(INPUTS, some)})
        for ours, theirs in zip(policy(*some), found):
            wanted = ours.numpy()
            legal = np.isfinite(wanted)
            if wanted.shape != theirs.shape or not np.array_equal(legal, np.isfinite(theirs)):
                return float("inf")
            wanted, theirs = np.where(legal, wanted, 0), np.where(legal, theirs, 0)
            scale = max(1.0, float(np.abs(wanted).max(initial=0)))
            greatest = max(greatest, float(np.abs(wanted - theirs).max(initial=0)) / scale)
    return greatest


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: done; REFUSED: a sentence on stderr says why not; INTERRUPTED: a signal came, nothing is left."""
    parser = argparse.ArgumentParser(prog="python -m simul.common.nets.onnx_file")
    parser.add_argument("checkpoint")
    parser.add_argument("file", type=Path)
    parser.add_argument("--trust", action="store_true")
    options = parser.parse_args(arguments)
    try:
        policy = load_policy(options.checkpoint, trust=options.trust)
        difference = write_onnx(policy, options.file)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (ConfigError, CheckpointError) as error:
        sys.stderr.write(printable(f"simul: {error}", LINES) + "\n")
        return REFUSED
    except OSError as error:
        sys.stderr.write(printable(f"simul: {options.file} cannot be written: {error.strerror}.", LINES) + "\n")
        return REFUSED
    print_text(
        f"written: {options.file} ({options.file.stat().st_size / 2**20:.1f} MiB), {policy.spec.described()}; "
        f"its answers to {COMPARED_ROWS} random observations differ from the policy's by at most {difference:.1g}"
    )
    return 0


if __name__ == "__main__":
    for name in ("SIGTERM", "SIGUSR1"):  # by which `simul export` passes a signal on
        if number := getattr(signal, name, None):
            signal.signal(number, signal.default_int_handler)
    sys.exit(main())
