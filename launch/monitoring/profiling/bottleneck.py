"""What limits a run, by its profile, and the setting to try. Pure."""

from __future__ import annotations

from typing import NamedTuple

from simul.common.config.schema import Config
from simul.launch.monitoring.profiling.profile import Profile, RoleProfile

HELD_BACK = 0.1  # share of the server's time that it waits for the learner, from which the learner is the limit
LEARNER_BUSY = 0.95  # a learner that never waits
BUSY = 0.8  # share of its time that the process works which is the limit
SATURATED = 0.9  # share of the cores in use
OTHERS = 0.25  # share of the cores in use by processes that do not belong to the run
BATCH_WAIT = 0.3
MANY_ENVS = 256  # games of one worker: more do not make batches much fuller
SMALL_BATCH = 32.0
TITLES = {"env_worker": "env workers", "inference_server": "inference server", "learner": "learner"}


class Bottleneck(NamedTuple):
    """`limit`: learner, env_worker, inference_server, processor, other_processes, batch_wait or games_in_flight.

    `setting`: what to try, as `--set` takes it; "" where no setting helps. `sentence` says both.
    """

    limit: str
    setting: str
    sentence: str


def find_bottleneck(profile: Profile, config: Config) -> Bottleneck:
    """What limits the run, the first that holds: other processes, the learner, the processor, a process, few games."""
    learner, server, workers = (profile.roles.get(role) for role in ("learner", "inference_server", "env_worker"))
    held = server.share.get("learner_full", 0.0) if server else 0.0
    in_use = profile.in_use()
    if not profile.decisions:
        return Bottleneck("", "", "No decision was answered in this time: `simul logs` says what the processes do.")
    if in_use >= SATURATED * profile.cores and profile.other_cores_used >= OTHERS * profile.cores:
        return Bottleneck(  # first: every process of the run then looks busy
            "other_processes", "", f"The processor limits the run: {in_use:.1f} of {profile.cores:g} cores are in use, "
            f"{profile.other_cores_used:.1f} of them by processes that do not belong to it; end those first.",
        )  # fmt: skip
    if learner and (held >= HELD_BACK or learner.busy >= LEARNER_BUSY):
        return _learner(profile, learner, held, config)
    if in_use >= SATURATED * profile.cores:
        return _processor(profile, in_use, config)
    if workers and max(workers.busy, workers.children_cores / workers.processes) >= BUSY:
        count = config.workers.count + 1
        return _with_setting(
            "env_worker", f"The env workers limit the run: the busiest works {workers.busy:.0%} of its time, "
            f"{_most_of_it(workers)}"
            + ("" if profile.on_cluster else f", and {profile.cores - in_use:.1f} cores are free"),
            f"workers.count={count}", config.workers.count,
        )  # fmt: skip
    if server and server.busy >= BUSY:
        return _server(profile, server, config)
    if server and server.share.get("batch_wait", 0.0) >= BATCH_WAIT and config.server.batching == "fill":
        return _with_setting(
            "batch_wait", f"The inference server waits {server.share['batch_wait']:.0%} of its time for fuller batches",
            "server.batching=greedy", config.server.batching,
        )  # fmt: skip
    waits = ", ".join(f"the {TITLES[role]} {1 - each.busy:.0%}" for role, each in profile.roles.items())
    return _with_setting(
        "games_in_flight", f"Too few games are in flight: of their time {waits} only wait", *_more_games(config)
    )


def _learner(profile: Profile, learner: RoleProfile, held: float, config: Config) -> Bottleneck:
    options = config.learner
    sentence = f"The learner limits the run: it works {learner.busy:.0%} of its time, {_most_of_it(learner)}"
    if held >= HELD_BACK:
        sentence += f", and the inference server waits for it {held:.0%} of its time"
    spare = profile.cores - profile.in_use()
    stage = learner.largest()
    if stage == "publish":
        return _with_setting("learner", sentence, f"learner.batch_steps={2 * options.batch_steps}", options.batch_steps)
    if stage == "save":
        now = options.checkpoint_every_sec
        return _with_setting("learner", sentence, f"learner.checkpoint_every_sec={2 * now:g}", f"{now:g}")
    ranks = config.cluster.learner.ranks
    if spare >= ranks and learner.cores >= BUSY * options.threads * ranks:
        return _with_setting("learner", sentence, f"learner.threads={options.threads + 1}", options.threads)
    return _with_setting("learner", sentence, *_less_learning(config))


def _less_learning(config: Config) -> tuple[str, object]:
    options = config.learner
    if options.algorithm == "alphazero":
        return f"replay.uses={config.replay.uses / 2:g}", f"{config.replay.uses:g}"
    if options.epochs > 1:
        return f"learner.epochs={options.epochs - 1}", options.epochs
    if options.minibatches > 1:
        return f"learner.minibatches={max(options.minibatches // 2, 1)}", options.minibatches
    return "", ""


def _processor(profile: Profile, in_use: float, config: Config) -> Bottleneck:
    """Every core is in use, most of them by one role."""
    sentence = f"The processor limits the run: {in_use:.1f} of {profile.cores:g} cores are in use"
    role, most = max(profile.roles.items(), key=lambda item: item[1].cores + item[1].children_cores)
    used = most.cores + most.children_cores
    hosts = f" ({most.children_cores:.1f} by the processes they started)" if most.children_cores >= 0.1 else ""
    sentence += f", {used:.1f} of them by the {TITLES[role]}{hosts}, {_most_of_it(most)}"
    if role == "learner":
        return _with_setting("processor", sentence, *_less_learning(config))
    if role == "inference_server" and most.largest() == "forward" and (profile.mean_batch or 0.0) >= SMALL_BATCH:
        return _with_setting("processor", sentence, *_cheaper_forward(config))
    if config.workers.count > profile.cores:
        return _with_setting("processor", sentence, f"workers.count={config.workers.count - 1}", config.workers.count)
    return _with_setting("processor", sentence, *_more_games(config))


def _server(profile: Profile, server: RoleProfile, config: Config) -> Bottleneck:
    sentence = f"The inference server limits the run: it works {server.busy:.0%} of its time, {_most_of_it(server)}"
    small, spare = (profile.mean_batch or 0.0) < SMALL_BATCH, profile.cores - profile.in_use()
    servers, threads = config.cluster.servers.count, config.server.threads
    if not small and server.largest() != "forward" and spare >= 1.0 and config.workers.count > servers:
        return _with_setting("inference_server", sentence, f"cluster.servers.count={servers + 1}", servers)
    if small or server.largest() != "forward":
        return _with_setting("inference_server", sentence, *_more_games(config))
    if spare >= 1.0 and threads < profile.cores:
        return _with_setting("inference_server", sentence, f"server.threads={threads + 1}", threads)
    return _with_setting("inference_server", sentence, *_cheaper_forward(config))


def _cheaper_forward(config: Config) -> tuple[str, object]:
    if config.server.precision == "float32":
        return "server.precision=auto", config.server.precision
    return ("server.device=auto", "cpu") if config.server.device == "cpu" else ("", "")


def _more_games(config: Config) -> tuple[str, object]:
    """More rows in a message and in a batch, each of which then costs less."""
    workers = config.workers
    if workers.envs < MANY_ENVS:
        return f"workers.envs={2 * workers.envs}", workers.envs
    return f"workers.count={workers.count + 1}", workers.count


def _most_of_it(role: RoleProfile) -> str:
    stage = role.largest()
    return f"most of it on `{stage}` ({role.share[stage]:.0%})" if stage else "none of it on a stage"


def _with_setting(limit: str, sentence: str, setting: str, now: object) -> Bottleneck:
    advice = f"Try `--set {setting}` ({now} now)." if setting else "A smaller network, or a faster machine, helps."
    return Bottleneck(limit, setting, f"{sentence}. {advice}")
