"""Builds a learner from the run's configuration."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from simul.common.checkpoints.folders import PAST
from simul.common.config.schema import Config, LearnerConfig
from simul.common.errors import ConfigError, WeightsError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.devices import choose_device, choose_precision
from simul.common.nets.layers.inputs import AttendedInputs
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import RoleArguments, StopFlag
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import address_name
from simul.common.role.run_sockets import bind_router
from simul.common.runtime.metrics import Stages
from simul.common.store.claim import read_claim
from simul.common.transport import RouterSocket
from simul.learner.algorithms import ALGORITHMS, ALPHAZERO, Settings
from simul.learner.checkpoints.checkpoint_schedule import CheckpointSchedule
from simul.learner.checkpoints.checkpoint_store import CheckpointStore, RunFacts
from simul.learner.checkpoints.last_version import LastVersionFile
from simul.learner.checkpoints.league import League
from simul.learner.checkpoints.optimizer_state import check_reward_scale, restore, unusable_optimizer
from simul.learner.checkpoints.store_mirror import StoreMirror
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.samples import SampleChecker
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from simul.learner.learner import Learner, LearnerParts, LearningSchedule, TrainingProgress
from simul.learner.ranked_learner import RankedLearner, RankFollower, share_start
from simul.learner.ranks import ALONE, Ranks
from simul.learner.replay.buffer import ReplayBuffer
from simul.learner.replay.experience_replay import ExperienceReplay
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout
from simul.learner.replay.schedule import ReplayWindow, UseSchedule
from simul.learner.training.minibatches import empty_unroll
from simul.learner.training.sample_trainer import DealtSampleTrainer, SampleTrainer, SampleUpdater
from simul.learner.training.schedules import scheduled
from simul.learner.training.trainer import NetworkUpdater, Trainer
from simul.learner.training.unroll_trainer import UnrollTrainer
from simul.learner.training.update import STAGES, Updater


@dataclass(frozen=True)
class BuildContext:
    """What every part of a learner is built from. `stages`: those of the learner's loop."""

    arguments: RoleArguments
    config: Config
    spec: GameSpec
    network: RecurrentNetwork
    ranks: Ranks
    stages: Stages

    @property
    def options(self) -> LearnerConfig:
        """Of the learner."""
        return self.config.learner

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    @property
    def leads(self) -> bool:
        """This is rank 0, which publishes, saves, and has the replay buffer."""
        return self.ranks.rank == 0


@contextmanager
def open_learner(arguments: RoleArguments, meeting: str, reporter: Reporter, stop: StopFlag) -> Iterator[Learner]:
    """The learner, with what its run has learned so far; its sockets and threads are closed afterwards.

    Args:
        meeting: where several ranks meet; they wait for each other.

    Raises:
        ConfigError, CheckpointError: it cannot start.
        RankLostError: another rank did not come, or `stop` is set.
    """
    run_dir = arguments.run_dir
    config, trust = run_dir.read_trusted_config()
    spec = run_dir.read_spec()
    torch.set_num_threads(config.learner.threads)
    device = _choose_device(config, arguments.index)
    network = build_network(config.network, spec, seed=config.seed, trust=trust).to(device)
    ranks: Ranks = ALONE
    with ExitStack() as opened:
        if (count := config.cluster.learner.ranks) > 1:
            # Here, because a learner of one process has no use for torch.distributed.
            from simul.learner.distributed_ranks import DistributedRanks

            place = run_dir.sockets / f"ranks-{meeting}"
            met = DistributedRanks(arguments.index, count, place, device, lambda: stop)
            ranks = opened.enter_context(closing(met))
        context = BuildContext(arguments, config, spec, network, ranks, Stages(STAGES))
        yield _assemble(context, reporter, stop, opened)


def _choose_device(config: Config, rank: int) -> torch.device:
    """Each rank has a CUDA device of its own, where there are as many."""
    device = choose_device(config.learner.device)
    if device.type != "cuda" or config.cluster.learner.ranks == 1:
        return device
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _assemble(context: BuildContext, reporter: Reporter, stop: StopFlag, opened: ExitStack) -> Learner:
    replay = None
    updater: SampleUpdater | Updater
    notes = (
        opponent_note(context.config, context.spec, context.network),
        ending_note(context.options, context.spec, context.network),
        burn_in_note(context.config, context.network),
        attention_note(context.config, context.spec, context.network),
        precision_note(context.config, context.device, context.network),
    )
    for note in filter(None, notes if context.leads else ()):
        reporter.send({}, event=note)
    if context.options.algorithm == ALPHAZERO:
        updater = _sample_updater(context)
        replay = _open_replay(context) if context.leads else None
    else:
        updater = _updater(context)
    checkpoints = _checkpoint_schedule(context)
    last_version = LastVersionFile(context.arguments.run_dir.checkpoints)
    progress = TrainingProgress()
    if context.leads:
        progress = _resume(context, checkpoints, last_version, updater, reporter)
        checkpoints.horizon = progress.horizon
    if context.ranks.count > 1:
        progress = share_start(updater, progress, context.ranks)
    if checkpoints.mirror is not None:
        checkpoints.mirror.start()
        opened.callback(checkpoints.mirror.close)
    io = _open_io(context, progress.version, reporter, opened)
    trainer = _trainer(context, updater, io, replay)
    schedule = learning_schedule(context.options, progress.horizon)
    parts = LearnerParts(
        trainer, io, checkpoints, last_version, reporter, stop, schedule, progress, context.stages
    )  # fmt: skip
    if context.ranks.count == 1:
        return Learner(parts)
    return (RankedLearner if context.leads else RankFollower)(context.ranks, parts)


def _checkpoint_schedule(context: BuildContext) -> CheckpointSchedule:
    config, options, folder = context.config, context.options, context.arguments.run_dir.checkpoints
    facts = RunFacts(context.spec, config.network, config.fingerprint(), config.seed, context.network.state_size)
    resident = options.past_resident if config.opponents.past > 0 else 0
    every = config.evaluation.every_decisions  # answered ones; a checkpoint counts those that were learned
    learned = max(1, round(every * config.learned_share(context.spec.seats))) if every else 0
    league = League(folder / PAST, every_decisions=options.past_every_decisions, resident=resident)
    return CheckpointSchedule(
        CheckpointStore(folder), league, facts, begin=time.monotonic(),
        every_sec=options.checkpoint_every_sec, milestone_every_decisions=options.milestone_every_decisions,
        evaluation_every_decisions=learned,
        mirror=_store_mirror(context) if context.leads else None,
    )  # fmt: skip


def _store_mirror(context: BuildContext) -> StoreMirror | None:
    """Not started yet: what is damaged is first set aside."""
    config, arguments = context.config, context.arguments
    if not config.store:
        return None
    owner = read_claim(arguments.run_dir, arguments.run_id)
    return StoreMirror(config.store, arguments.run_dir, owner, config.store_milestone_decisions)


def _resume(
    context: BuildContext,
    checkpoints: CheckpointSchedule,
    last_version: LastVersionFile,
    updater: NetworkUpdater,
    reporter: Reporter,
) -> TrainingProgress:
    """Restore weights, moments and league from the newest whole checkpoint; a fresh start where there is none."""
    store = checkpoints.store
    checkpoint = store.latest(context.spec)
    published, ignored = last_version.read(-1 if checkpoint is None else checkpoint.meta.version)
    for note in filter(None, (*store.drain_notes(), ignored)):
        reporter.send({}, event=note)
    if checkpoint is None:
        return TrainingProgress(published + 1, horizon=context.config.horizon(context.spec.seats))
    statistics = restore(checkpoint, updater.network, updater.optimizer)
    check_reward_scale(checkpoint, statistics, context.options.normalize_rewards)
    try:
        updater.load_statistics(statistics)
    except WeightsError as error:
        raise unusable_optimizer(checkpoint, error) from None
    meta = checkpoint.meta
    checkpoints.resume_from(checkpoint, time.monotonic())
    resumed = f"Resumed from checkpoint {meta.version} ({meta.decisions:,} decisions learned)."
    if not meta.updates:  # copied by `simul up --from`
        resumed = f"Begins with the weights of version {meta.version}; no decision is learned from yet."
    horizon = context.config.horizon(context.spec.seats, meta.horizon, meta.decisions)
    checkpoints.league.load_past_selves(context.spec, meta.decisions)
    for note in (*checkpoints.drain_notes(), resumed):
        reporter.send({}, event=note)
    return TrainingProgress(max(meta.version, published) + 1, meta.decisions, meta.updates, horizon)


def _open_io(context: BuildContext, version: int, reporter: Reporter, opened: ExitStack) -> LearnerIO:
    """Bind the sockets. `version`: the next one that rank 0 publishes."""
    run_dir, rank = context.arguments.run_dir, context.ranks.rank
    unrolls = opened.enter_context(closing(bind_router(run_dir, "unrolls", rank)))
    weights: RouterSocket | None = None
    if context.leads:
        weights = opened.enter_context(closing(bind_router(run_dir, "weights")))
    if run_dir.addresses() is not None:
        reporter.endpoints = {address_name("unrolls", rank): unrolls.endpoint}
        reporter.endpoints |= {} if weights is None else {"weights": weights.endpoint}
    options, samples = context.options, None
    if options.algorithm == ALPHAZERO:
        needed, samples = math.ceil(options.batch_steps / context.config.replay.uses), SampleChecker(context.spec)
    else:
        needed = math.ceil(options.batch_steps / context.ranks.count)
    io = LearnerIO(
        unrolls,
        weights,
        UnrollChecker(context.spec, context.network.state_size, options.unroll_length),
        CreditAllocator(2 * needed, options.unroll_length),
        ServerHandshake(run_dir.token(), context.spec.fingerprint(), version),
        samples,
    )
    opened.callback(io.close)
    if not context.leads:
        io.note_published(version)
    return io


def training_precision(name: str, device: torch.device, network: RecurrentNetwork) -> torch.dtype:
    """Of the products; lower than float32 only for a network that is served so, too: else the two policies differ."""
    chosen = choose_precision(name, device)
    served = network.lowered(chosen)
    return chosen if any(each.dtype == chosen for each in served.parameters()) else torch.float32


def _updater(context: BuildContext) -> Updater:
    config, options = context.config, context.options
    return Updater(
        context.network,
        ALGORITHMS[options.algorithm],
        discount=options.discount,
        minibatches=options.minibatches,
        epochs=options.epochs,
        max_gradient_norm=options.max_gradient_norm,
        target_kl=options.target_kl,
        precision=training_precision(options.precision, context.device, context.network),
        zero_state=config.server.zero_state,
        seed=config.seed,
        normalize_rewards=options.normalize_rewards,
        stages=context.stages,
        ranks=context.ranks,
        nothing=empty_unroll(context.spec, context.network.state_size),
        burn_in=0 if burn_in_note(config, context.network) else options.burn_in,
    )


def _sample_updater(context: BuildContext) -> SampleUpdater:
    config, options, network = context.config, context.options, context.network
    if network.state_size:
        raise ConfigError(
            f"learner.algorithm: alphazero learns from single positions, and the network {config.network.name} has a "
            f"memory of {network.state_size} numbers. Set network.name: board_resnet or mlp, or switch the memory off "
            "in network.options, by memory: false or none."
        )
    return SampleUpdater(
        network,
        num_actions=context.spec.num_actions,
        minibatches=options.minibatches,
        max_gradient_norm=options.max_gradient_norm,
        weight_decay=options.weight_decay,
        precision=training_precision(options.precision, context.device, context.network),
        stages=context.stages,
        ranks=context.ranks,
    )


def _open_replay(context: BuildContext) -> ExperienceReplay:
    """The replay buffer with what a former life of the learner has stored. Raises ConfigError."""
    options, layout = context.config.replay, SampleLayout(context.spec)
    buffer = ReplayBuffer(layout, options.memory_mb * 2**20, options.min_samples)
    files = ReplayFiles(context.arguments.run_dir.root / "replay", layout, options.disk_mb * 2**20)
    window = ReplayWindow(options.window_samples, options.window_exponent, options.window_slope)
    replay = ExperienceReplay(buffer, files, window, context.config.seed)
    replay.restore()
    return replay


def _trainer(
    context: BuildContext, updater: SampleUpdater | Updater, io: LearnerIO, replay: ExperienceReplay | None
) -> Trainer[Any]:
    options, ranks = context.options, context.ranks
    if isinstance(updater, Updater):
        return UnrollTrainer(updater, io, options.batch_steps, options.max_policy_lag, ranks)
    if replay is None:
        return DealtSampleTrainer(updater, ranks)
    schedule = UseSchedule(context.config.replay.uses, options.batch_steps, context.config.replay.min_samples)
    return SampleTrainer(updater, io.samples, replay, schedule, context.stages, ranks)


def opponent_note(config: Config, spec: GameSpec, network: RecurrentNetwork) -> str:
    """A sentence where nothing predicts what the opponent does although the configuration asks for it; else empty."""
    if not spec.opponent_labels:
        what = f"the game {spec.name} has no labels of it"
    elif not network.predicts_opponent:
        what = "the network has no part that does"
    else:
        what = config.game_section.label_problem()
    if not what or not config.learner.opponent_coefficient:
        return ""
    return f"learner.opponent_coefficient is not used: nothing predicts what the opponent does, because {what}."


def ending_note(options: LearnerConfig, spec: GameSpec, network: RecurrentNetwork) -> str:
    """A sentence where nothing predicts a game's end although the configuration asks for it; else empty."""
    if not options.ending_coefficient or (any(spec.ending_sizes) and network.predicts_ending):
        return ""
    what = "the network has no part that does" if any(spec.ending_sizes) else f"the game {spec.name} does not tell it"
    return f"learner.ending_coefficient is not used: nothing predicts how a game ends, because {what}."


def burn_in_note(config: Config, network: RecurrentNetwork) -> str:
    """A sentence where burn-in is configured and there is no state that it would advance; else empty."""
    if not config.learner.burn_in or (network.state_size and not config.server.zero_state):
        return ""
    why = (
        "server.zero_state gives each decision a state of zeros" if network.state_size else "the network has no memory"
    )
    return f"learner.burn_in is not used: {why}."


def attention_note(config: Config, spec: GameSpec, network: RecurrentNetwork) -> str:
    """A sentence where the network `attention` has no entities to attend to; else empty."""
    if not any(isinstance(part, AttendedInputs) and not part.groups for part in network.modules()):
        return ""
    return (
        f"The network {config.network.name} has nothing to attend to: {spec.name} declares no entities. Name groups of "
        "its layout in network.options.entities, if it has some, or take the network mlp or mlp_gru, which is cheaper."
    )


def precision_note(config: Config, device: torch.device, network: RecurrentNetwork) -> str:
    """A sentence where a lower precision is configured by name and the network is trained in float32; else empty."""
    wanted = config.learner.precision
    if wanted == "auto" or training_precision(wanted, device, network) == choose_precision(wanted, device):
        return ""
    return f"learner.precision {wanted} is not used: the network {config.network.name} is served in float32."


def learning_schedule(options: LearnerConfig, horizon: int) -> LearningSchedule:
    """What the configuration lets change over a run, until `horizon` decisions are learned."""
    fixed = Settings(
        gae_lambda=options.gae_lambda,
        clip=options.clip,
        rho_clip=options.rho_clip,
        c_clip=options.c_clip,
        value_coefficient=options.value_coefficient,
        opponent_coefficient=options.opponent_coefficient,
        ending_coefficient=options.ending_coefficient,
    )

    def settings(decisions: int) -> Settings:
        first, last = options.entropy_coefficient, options.final_entropy_coefficient
        entropy = scheduled(options.entropy_schedule, first, last, decisions, horizon)
        return dataclasses.replace(fixed, entropy_coefficient=entropy)

    def learning_rate(decisions: int) -> float:
        first, last = options.learning_rate, options.final_learning_rate
        return scheduled(options.learning_rate_schedule, first, last, decisions, horizon)

    oldest = math.inf if options.algorithm == ALPHAZERO else options.max_policy_lag
    return LearningSchedule(options.max_skipped_minibatches, oldest, learning_rate, settings)
