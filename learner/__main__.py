"""`python -m simul.learner --run-dir D --index 0 --run-id R --parent PID`: builds the objects, runs the loop."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from contextlib import ExitStack, closing
from typing import Any

import torch

from simul.common.config.schema import Config, LearnerConfig
from simul.common.errors import CheckpointError, ConfigError, DivergedError, NothingLearnedError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.devices import choose_device, choose_precision
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import (
    EXIT_ENDS_RUN,
    EXIT_RANK_LOST,
    SAVE_PATIENCE_SEC,
    RoleArguments,
    StopFlag,
    ensure_temporary_folder,
    parse_learner_arguments,
)
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import RunDir, address_name
from simul.common.role.run_sockets import bind_router
from simul.common.runtime.logs import set_up
from simul.common.runtime.metrics import Stages
from simul.common.store.claim import read_claim
from simul.common.transport import RouterSocket
from simul.learner.algorithms import ALGORITHMS, ALPHAZERO, Settings
from simul.learner.checkpoints.checkpoint_schedule import CheckpointSchedule
from simul.learner.checkpoints.checkpoint_store import CheckpointStore, RunFacts
from simul.learner.checkpoints.league import League
from simul.learner.checkpoints.optimizer_state import check_reward_scale, restore
from simul.learner.checkpoints.store_mirror import StoreMirror
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.last_version import LastVersionFile
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.samples import SampleChecker
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from simul.learner.learner import Learner, LearningSchedule, TrainingProgress, linear
from simul.learner.ranked_learner import RankedLearner, RankFollower, share_start
from simul.learner.ranks import ALONE, RankLostError, Ranks
from simul.learner.replay.buffer import ReplayBuffer
from simul.learner.replay.experience_replay import ExperienceReplay
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout
from simul.learner.replay.schedule import ReplayWindow, UseSchedule
from simul.learner.training.minibatches import empty_unroll
from simul.learner.training.sample_trainer import DealtSampleTrainer, SampleTrainer, SampleUpdater
from simul.learner.training.trainer import NetworkUpdater, Trainer
from simul.learner.training.unroll_trainer import UnrollTrainer
from simul.learner.training.update import STAGES, Updater


def main() -> int:
    """Exit code 0: stopped; 1: diverged, or could not save; 2: cannot start; EXIT_ENDS_RUN: no restart would help.

    EXIT_RANK_LOST: another rank of this learner is gone.
    """
    arguments, meeting = parse_learner_arguments()
    log = set_up(f"simul-learner-{arguments.index}")
    ensure_temporary_folder()
    stop = StopFlag(arguments.parent, orphan_sec=SAVE_PATIENCE_SEC).install()
    reporter = Reporter(arguments, "learner")
    reporter.send({}, state="starting")
    try:
        return 0 if _run(arguments, meeting, reporter, stop) else 1
    except (ConfigError, CheckpointError) as error:
        reporter.send({}, state="failed", event=str(error))
        log.error("%s", error)
        return 2
    except DivergedError as error:
        log.error("%s", error)
        return 1
    except NothingLearnedError as error:
        log.error("%s", error)
        return EXIT_ENDS_RUN
    except RankLostError as error:
        log.error("%s", error)
        return 0 if stop else EXIT_RANK_LOST
    finally:
        reporter.close()


def _run(arguments: RoleArguments, meeting: str, reporter: Reporter, stop: StopFlag) -> bool:
    """False where the last checkpoint could not be written."""
    run_dir = arguments.run_dir
    config, trust = run_dir.read_trusted_config()
    spec = run_dir.read_spec()
    torch.set_num_threads(config.learner.threads)
    device = _choose_device(config, arguments.index)
    network = build_network(config.network, spec, seed=config.seed, trust=trust).to(device)
    if config.cluster.learner.ranks == 1:
        return _learn(arguments, config, spec, network, ALONE, reporter, stop)
    # Here, because a learner of one process has no use for torch.distributed.
    from simul.learner.distributed_ranks import DistributedRanks

    place = run_dir.sockets / f"ranks-{meeting}"
    with closing(DistributedRanks(arguments.index, config.cluster.learner.ranks, place, device, lambda: stop)) as ranks:
        return _learn(arguments, config, spec, network, ranks, reporter, stop)


def _choose_device(config: Config, rank: int) -> torch.device:
    """Each rank has a CUDA device of its own, where there are as many."""
    device = choose_device(config.learner.device)
    if device.type != "cuda" or config.cluster.learner.ranks == 1:
        return device
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _learn(
    arguments: RoleArguments,
    config: Config,
    spec: GameSpec,
    network: RecurrentNetwork,
    ranks: Ranks,
    reporter: Reporter,
    stop: StopFlag,
) -> bool:
    run_dir, options, leads = arguments.run_dir, config.learner, ranks.rank == 0
    stages = Stages(STAGES)
    replay = None
    updater: SampleUpdater | Updater
    if options.algorithm == ALPHAZERO:
        updater = _build_sample_updater(config, network, spec, stages, ranks)
        replay = _open_replay(config, spec, run_dir) if leads else None
    else:
        updater = _build_updater(config, network, spec, stages, ranks)
    store = CheckpointStore(run_dir.checkpoints)
    checkpoints = _checkpoint_schedule(arguments, config, spec, store, mirrored=leads)
    published = LastVersionFile(run_dir.checkpoints)
    progress = TrainingProgress()
    if leads:
        progress = _resume(store, checkpoints, published, updater, spec, reporter, options.normalize_rewards)
    if ranks.count > 1:
        progress = share_start(updater, progress, ranks)
    if checkpoints.mirror is not None:
        checkpoints.mirror.start()
    with ExitStack() as opened:
        unrolls = opened.enter_context(closing(bind_router(run_dir, "unrolls", ranks.rank)))
        weights = opened.enter_context(closing(bind_router(run_dir, "weights"))) if leads else None
        if run_dir.addresses() is not None:
            reporter.endpoints = {address_name("unrolls", ranks.rank): unrolls.endpoint}
            reporter.endpoints |= {} if weights is None else {"weights": weights.endpoint}
        handshake = ServerHandshake(run_dir.token(), spec.fingerprint(), progress.version)
        receiver = _build_receiver(config, spec, network.state_size, unrolls, weights, handshake, ranks)
        if not leads:
            receiver.note_published(progress.version)
        trainer = _build_trainer(config, updater, receiver, replay, stages, ranks)
        parts = (trainer, receiver, checkpoints, published, reporter, stop, _schedule(options), progress, stages)
        try:
            if ranks.count == 1:
                return Learner(*parts).run()
            return (RankedLearner if leads else RankFollower)(ranks, *parts).run()
        finally:
            receiver.close()
            if checkpoints.mirror is not None:
                checkpoints.mirror.close()


def _checkpoint_schedule(
    arguments: RoleArguments, config: Config, spec: GameSpec, store: CheckpointStore, *, mirrored: bool
) -> CheckpointSchedule:
    options = config.learner
    facts = RunFacts(spec, config.network, config.fingerprint(), config.seed)
    resident = options.past_resident if config.opponents.past > 0 else 0
    past = arguments.run_dir.checkpoints / "past"
    league = League(past, every_decisions=options.past_every_decisions, resident=resident)
    return CheckpointSchedule(
        store, league, facts, begin=time.monotonic(),
        every_sec=options.checkpoint_every_sec, milestone_every_decisions=options.milestone_every_decisions,
        evaluation_every_decisions=config.evaluation.every_decisions,
        mirror=_make_mirror(config, arguments) if mirrored else None,
    )  # fmt: skip


def _build_receiver(
    config: Config,
    spec: GameSpec,
    state_size: int,
    unrolls: RouterSocket,
    weights: RouterSocket | None,
    handshake: ServerHandshake,
    ranks: Ranks,
) -> LearnerIO:
    options = config.learner
    checker = UnrollChecker(spec, state_size, options.unroll_length)
    if options.algorithm == ALPHAZERO:
        needed, samples = math.ceil(options.batch_steps / config.replay.uses), SampleChecker(spec)
    else:
        needed, samples = math.ceil(options.batch_steps / ranks.count), None
    credits = CreditAllocator(2 * needed, options.unroll_length)
    return LearnerIO(unrolls, weights, checker, credits, handshake, samples)


def _make_mirror(config: Config, arguments: RoleArguments) -> StoreMirror | None:
    """Not started yet: what is damaged is first set aside."""
    if not config.store:
        return None
    owner = read_claim(arguments.run_dir, arguments.run_id)
    return StoreMirror(config.store, arguments.run_dir, owner, config.store_milestone_decisions)


def _build_updater(
    config: Config, network: RecurrentNetwork, spec: GameSpec, stages: Stages, ranks: Ranks
) -> Updater:  # fmt: skip
    options = config.learner
    device = next(network.parameters()).device
    return Updater(
        network,
        ALGORITHMS[options.algorithm],
        discount=options.discount,
        minibatches=options.minibatches,
        epochs=options.epochs,
        max_gradient_norm=options.max_gradient_norm,
        precision=choose_precision(options.precision, device),
        zero_state=config.server.zero_state,
        seed=config.seed,
        normalize_rewards=options.normalize_rewards,
        stages=stages,
        ranks=ranks,
        nothing=empty_unroll(spec, network.state_size),
    )


def _build_sample_updater(
    config: Config, network: RecurrentNetwork, spec: GameSpec, stages: Stages, ranks: Ranks
) -> SampleUpdater:  # fmt: skip
    options = config.learner
    if network.state_size:
        raise ConfigError(
            f"learner.algorithm: alphazero learns from single positions, and the network {config.network.name} has a "
            f"memory of {network.state_size} numbers. Set network.options.memory: false, or network.name: board_resnet."
        )
    return SampleUpdater(
        network,
        num_actions=spec.num_actions,
        minibatches=options.minibatches,
        max_gradient_norm=options.max_gradient_norm,
        weight_decay=options.weight_decay,
        precision=choose_precision(options.precision, next(network.parameters()).device),
        stages=stages,
        ranks=ranks,
    )


def _open_replay(config: Config, spec: GameSpec, run_dir: RunDir) -> ExperienceReplay:
    """The replay buffer with what a former life of the learner has stored. Raises ConfigError."""
    options, layout = config.replay, SampleLayout(spec)
    buffer = ReplayBuffer(layout, options.memory_mb * 2**20, options.min_samples)
    files = ReplayFiles(run_dir.root / "replay", layout, options.disk_mb * 2**20)
    window = ReplayWindow(options.window_samples, options.window_exponent, options.window_slope)
    replay = ExperienceReplay(buffer, files, window, config.seed)
    replay.restore()
    return replay


def _build_trainer(
    config: Config,
    updater: SampleUpdater | Updater,
    receiver: LearnerIO,
    replay: ExperienceReplay | None,
    stages: Stages,
    ranks: Ranks,
) -> Trainer[Any]:
    options = config.learner
    if isinstance(updater, Updater):
        return UnrollTrainer(updater, receiver, options.batch_steps, options.max_policy_lag, ranks)
    if replay is None:
        return DealtSampleTrainer(updater, ranks)
    schedule = UseSchedule(config.replay.uses, options.batch_steps, config.replay.min_samples)
    return SampleTrainer(updater, receiver.samples, replay, schedule, options.batch_steps, stages, ranks)


def _resume(
    store: CheckpointStore,
    checkpoints: CheckpointSchedule,
    published: LastVersionFile,
    updater: NetworkUpdater,
    spec: GameSpec,
    reporter: Reporter,
    normalize_rewards: bool,
) -> TrainingProgress:
    """Restore weights, moments and league from the newest whole checkpoint; a fresh start where there is none."""
    checkpoint = store.latest(spec)
    last_version, ignored = published.read(-1 if checkpoint is None else checkpoint.meta.version)
    for note in filter(None, (*store.drain_notes(), ignored)):
        reporter.send({}, event=note)
    if checkpoint is None:
        return TrainingProgress(last_version + 1)
    statistics = restore(checkpoint, updater.network, updater.optimizer)
    check_reward_scale(checkpoint, statistics, normalize_rewards)
    updater.load_statistics(statistics)
    meta = checkpoint.meta
    checkpoints.resume_from(checkpoint, time.monotonic())
    resumed = f"Resumed from checkpoint {meta.version} ({meta.decisions:,} decisions learned)."
    if not meta.updates:  # copied by `simul up --from`
        resumed = f"Begins with the weights of version {meta.version}; no decision is learned from yet."
    checkpoints.league.load_past_selves(spec, meta.decisions)
    for note in (*checkpoints.drain_notes(), resumed):
        reporter.send({}, event=note)
    return TrainingProgress(max(meta.version, last_version) + 1, meta.decisions, meta.updates)


def _schedule(options: LearnerConfig) -> LearningSchedule:
    total = options.total_decisions
    fixed = Settings(
        gae_lambda=options.gae_lambda,
        clip=options.clip,
        rho_clip=options.rho_clip,
        c_clip=options.c_clip,
        value_coefficient=options.value_coefficient,
    )

    def settings(decisions: int) -> Settings:
        entropy = linear(options.entropy_coefficient, options.final_entropy_coefficient, decisions, total)
        return dataclasses.replace(fixed, entropy_coefficient=entropy)

    def learning_rate(decisions: int) -> float:
        return linear(options.learning_rate, options.final_learning_rate, decisions, total)

    oldest = math.inf if options.algorithm == ALPHAZERO else options.max_policy_lag
    return LearningSchedule(options.max_skipped_minibatches, oldest, learning_rate, settings)


if __name__ == "__main__":
    sys.exit(main())
