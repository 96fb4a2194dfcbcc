"""The bare batched forward: the served network on prepared inputs, without a server. With a run directory, that run's.

Says `ready`; takes JSON lines {"precision", "batch", "end"} and prints the microseconds of one forward:
forward_us by the clock (median), cpu_us of processor time (mean).
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch

from benchmarks.serving.policy import NETWORK, PRECISIONS, SPEC
from simul.common.nets.base import example_observation
from simul.common.nets.build import build_network
from simul.common.nets.traced import traced_forward
from simul.common.role.run_directory import RunDir

ILLEGAL = torch.finfo(torch.float32).min


@torch.inference_mode()
def main() -> None:
    """See the module's docstring."""
    torch.set_num_threads(1)
    spec, config = SPEC, NETWORK
    if sys.argv[1:]:
        run_dir = RunDir(sys.argv[1])
        spec, config = run_dir.read_spec(), run_dir.read_config().network
    network = build_network(config, spec)
    forwards = {
        name: traced_forward(network if name == "float32" else network.lowered(getattr(torch, name)), spec)
        for name in PRECISIONS
    }
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        wanted = json.loads(line)
        batch, forward = wanted["batch"], forwards[wanted["precision"]]
        observation = example_observation(spec, torch.rand(batch, spec.observation_size))
        mask, state = torch.rand(batch, spec.num_actions) < 0.5, network.initial_state(batch)
        times: list[tuple[float, float]] = []
        while time.monotonic() < wanted["end"] or len(times) < 20:
            begin, cpu = time.perf_counter(), time.thread_time()
            logits, _, state = forward(observation, mask, state)
            torch.where(mask, logits, ILLEGAL)
            times.append((time.perf_counter() - begin, time.thread_time() - cpu))
        walls, cpus = zip(*times[5:])
        found = {"forward_us": statistics.median(walls) * 1e6, "cpu_us": statistics.mean(cpus) * 1e6}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
