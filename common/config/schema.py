"""Frozen typed configuration, loaded strictly (`loader.py`). One comment per field; the YAML files repeat them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, field

from simul.common.config.automatic import AUTO
from simul.common.config.games import GAMES, GamesConfig
from simul.common.config.search import SearchConfig
from simul.common.config.section import (
    ArgumentsOf,
    CodeName,
    CodeNames,
    Few,
    Many,
    NonNegative,
    NonNegativeFloat,
    Plies,
    Port,
    Positive,
    PositiveDecisions,
    PositiveFloat,
    ProgramName,
    Section,
    Share,
    SharesOfCode,
)

# Keys of `Config` that only say what is watched or copied, and where.
WATCHING = (
    "evaluation", "metrics", "prometheus_port", "metrics_callback", "run_dir_access", "store",
    "store_milestone_decisions", "notice_every_decisions",
)  # fmt: skip
Auto = Literal["auto"]
Schedule = Literal["constant", "linear", "cosine", "exponential"]
LONG_HORIZON = 20_000_000  # decisions
NOT_KINDS = ("classes", "limit_sec", "past_by", "checkpoint")  # keys of `opponents` that are no opponent
S = TypeVar("S", bound=Section)


def _with_scripted(section: type[S]) -> type[S]:
    """`section` with a share, 0 by default, for each scripted opponent of the built-in games."""
    kinds = dict.fromkeys(kind for game in GAMES.values() for kind in game.scripted)
    extended = msgspec.defstruct(
        section.__name__,
        [(kind, Share, 0.0) for kind in kinds],
        bases=(section,),
        module=section.__module__,
        namespace={"__doc__": section.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )
    return cast(type[S], extended)


@_with_scripted
class OpponentsConfig(Section, frozen=True):
    """Opponents of the learner's seat, as shares of the games. They must add up to 1.

    A key module:Class of this section is written for that key of `classes`, in which it is stored.
    """

    self_play: Share = 1.0  # the current policy on every seat; all seats learn
    past: Share = 0.0  # frozen past selves; until the first exists, this share plays itself
    frozen: Share = 0.0  # the policy of `checkpoint`, which does not change
    classes: SharesOfCode = field(default_factory=dict)  # players of one's own by module:Class
    limit_sec: PositiveFloat = 10.0  # Pokémon: a player of one's own that takes longer over a choice loses its battle
    past_by: Literal["uniform", "hard"] = "uniform"  # hard: rather the past selves that win (prioritised self-play)
    checkpoint: str = ""  # that `frozen` plays: a checkpoint, a run directory, the URL of a store, or zoo:NAME

    def shares(self) -> dict[str, float]:
        """The share of every kind of opponent: those with a key, then module:Class."""
        named = {kind: getattr(self, kind) for kind in self.__struct_fields__ if kind not in NOT_KINDS}
        return {**named, **dict(sorted(self.classes.items()))}

    def learned_share(self, seats: int) -> float:
        """Decisions that are learned from per decision that the server answers: those of frozen policies are not."""
        others = self.past + self.frozen
        answered = (self.self_play + others) * seats + (1 - self.self_play - others)
        return 1 - others * (seats - 1) / answered


class NetworkConfig(Section, frozen=True):
    """The network that plays."""

    name: CodeName = "mlp_lstm"  # see docs/networks.md; or module:Class
    options: Annotated[dict[str, Any], ArgumentsOf("network.name")] = field(default_factory=dict)  # of the network
    shared: bool = True  # policy and value share all layers but the last; false: a network each
    normalize_observations: bool = False  # to mean 0 and variance 1 over all that was learned from, clipped at 10


class WorkersConfig(Section, frozen=True):
    """Env workers (no torch, no weights)."""

    count: Few = 1  # auto, as threads of server and learner: see `simul.common.config.automatic`
    envs: Many = 16  # games in flight per worker
    max_failed_share: Share = 0.5  # where more of a worker's last episodes raise, the run ends; 1: never


class ServerConfig(Section, frozen=True):
    """The inference server."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    cuda_graphs: bool = True  # on CUDA, capture a graph for each batch size; false: one operation at a time
    threads: Few = 1
    endpoint: str = ""  # empty: ipc inside the run directory; tcp://127.0.0.1:PORT to reach it from elsewhere
    ipc_access: Literal["owner", "group", "everyone"] = "owner"  # who may connect to an ipc endpoint
    curve_keys: str = ""  # folder of `simul keys new`: clients must show a listed key, and everything is encrypted
    shared_memory: bool = True  # on this machine (Linux): clients' observations, unrolls to the learner, its weights
    prometheus_port: Port = 0  # figures for Prometheus at 127.0.0.1:PORT/metrics; 0: off
    max_batch: Many = 256
    batching: Literal["greedy", "fill"] = "fill"  # fill: wait a moment for clients that are about to be back
    window_us: NonNegative = 0  # fill waits at most so long; 0: as long as the smallest batch's forward takes
    max_sessions: Many = 4096
    max_sessions_of_client: NonNegative = 0  # of one without the run's token; 0: half of max_sessions
    max_clients: Positive = 512  # beyond it only holders of the run's token are let in
    max_rows_waiting: Positive = 32768  # rows of all clients that wait for their batch; beyond: busy, try again
    max_rows_of_client: Positive = 8192  # the same, of one client
    slow_reader_replies: Positive = 100  # a client that left so many replies unread loses its sessions
    idle_timeout_sec: PositiveFloat = 120.0  # a session without a sign of life is reaped
    client_timeout_sec: PositiveFloat = 10.0  # a client without a sign of life is gone
    deterministic: bool = False  # one bucket, one thread, float32: the same game replays bit for bit
    zero_state: bool = False  # ablation: forget the recurrent state at every step


class LearnerConfig(Section, frozen=True):
    """The learner. T is unroll_length, B the unrolls of a batch.

    `simul.common.config.learner_presets` has other defaults for small games; `load_config` applies them.
    """

    algorithm: Literal["ppo", "vtrace", "reinforce", "alphazero"] = "ppo"  # alphazero: games with search, see `replay`
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    threads: Few = 1
    unroll_length: Many = 32
    burn_in: NonNegative = 0  # first steps of an unroll that only advance the recurrent state, see docs/networks.md
    batch_steps: Annotated[int, Meta(ge=1, le=10**8)] = 4096  # steps learned from per update, in whole unrolls
    minibatches: Positive = 2
    epochs: Positive = 1
    target_kl: NonNegativeFloat = 0.0  # no further pass of an update once the policy's KL is larger; 0: off
    learning_rate: PositiveFloat = 3e-4
    final_learning_rate: NonNegativeFloat = 0.0  # at total_decisions
    learning_rate_schedule: Schedule = "linear"  # constant: learning_rate alone; exponential: both are above 0
    total_decisions: PositiveDecisions | Auto = AUTO  # horizon of the schedules, see `Config.horizon`
    discount: Share = 0.999
    gae_lambda: Share = 0.95
    clip: PositiveFloat = 0.2
    value_coefficient: NonNegativeFloat = 0.5
    entropy_coefficient: NonNegativeFloat = 0.01
    final_entropy_coefficient: NonNegativeFloat = 0.001
    entropy_schedule: Schedule = "linear"  # as learning_rate_schedule
    opponent_coefficient: NonNegativeFloat = 0.0  # predict what the opponent does, where the game has labels of it
    ending_coefficient: NonNegativeFloat = 0.0  # alphazero: predict what the end will show, where the game tells it
    rho_clip: PositiveFloat = 1.0  # V-trace
    c_clip: PositiveFloat = 1.0  # V-trace
    normalize_rewards: bool = False  # divide by the standard deviation of the discounted return so far, clip at 10
    max_gradient_norm: PositiveFloat = 0.5
    weight_decay: NonNegativeFloat = 0.0  # decoupled (AdamW), with alphazero only
    max_policy_lag: Positive = 20  # older unrolls are dropped and counted
    max_skipped_minibatches: Positive = 100  # so many in a row without a step (a gradient is not finite) end the run
    checkpoint_every_sec: PositiveFloat = 60.0
    milestone_every_decisions: Positive = 500_000  # kept for good
    past_every_decisions: Positive = 250_000  # a frozen past self joins the league
    past_resident: NonNegative = 3  # at most so many past selves are served at once


LATER_KEYS = {  # added to a section later: their defaults change no fingerprint
    "gymnasium": ("frame_stack", "ids", "max_entities"),
    "network": ("normalize_observations", "shared"),
    "ofc": ("foul_cost", "final_foul_cost", "rollouts_by"),
    "opponents": ("checkpoint", "frozen", "past_by"),
    "pokemon": ("builtin_observation", "observation", "opponent_teams", "reward"),
    "search": ("candidates", "td_lambda", "worlds"),
    "workers": ("max_failed_share",),
    "learner": (
        "burn_in",
        "ending_coefficient",
        "entropy_schedule",
        "learning_rate_schedule",
        "normalize_rewards",
        "opponent_coefficient",
        "target_kl",
        "weight_decay",
    ),
}
LATER_SECTIONS = ("replay", "search", "cluster")  # likewise


class ReplayConfig(Section, frozen=True):
    """The replay buffer of `learner.algorithm: alphazero`.

    An update draws learner.batch_steps samples, in learner.minibatches steps; learner.epochs is not used.
    """

    uses: PositiveFloat = 4.0  # draws for each sample that arrives; the workers wait for a learner that is slower
    min_samples: Positive = 2000  # nothing is learned before so many are stored
    window_samples: Positive = 50_000  # all samples are drawn from up to so many; then the window grows more slowly:
    window_exponent: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.75  # by this power of the samples since the start,
    window_slope: Share = 0.4  # at first by so many for each new one
    memory_mb: Annotated[int, Meta(ge=1, le=10**6)] = 1024  # reserved at once; the oldest samples make room
    disk_mb: Annotated[int, Meta(ge=1, le=10**7)] = 1024  # RUN_DIR/replay; the oldest files make room


class ClusterServersConfig(Section, frozen=True):
    """Inference servers; each has the settings of `server`."""

    count: Annotated[int, Meta(ge=1, le=64)] = 1  # each with its own sessions; each worker plays on one of them


class ClusterLearnerConfig(Section, frozen=True):
    """Ranks of the learner; each is a process with the settings of `learner`."""

    ranks: Annotated[int, Meta(ge=1, le=64)] = 1  # they divide each batch, and make the same steps


class PlacementConfig(Section, frozen=True):
    """What the processes of a run on several machines (`simul up --on ray`) need there.

    Processors: learner.threads for each rank, server.threads, and one for each worker. All ranks are on one machine.
    """

    worker_nodes: Positive = 1  # the workers are divided into so many parts, each of them on one machine
    learner_gpus: NonNegativeFloat = 0.0  # of all its ranks together
    server_gpus: NonNegativeFloat = 0.0  # of each server; 0.5: two of them share a GPU
    lost_after_sec: PositiveFloat = 30.0  # a machine without a sign of life is lost, and its processes start elsewhere


class ClusterConfig(Section, frozen=True):
    """How many processes of a role a run has, where one is not enough, and what they need on a cluster."""

    servers: ClusterServersConfig = ClusterServersConfig()
    learner: ClusterLearnerConfig = ClusterLearnerConfig()
    placement: PlacementConfig = PlacementConfig()


class EvaluationConfig(Section, frozen=True):
    """Greedy games of the newest checkpoint while the run trains."""

    every_decisions: NonNegative = 0  # answered decisions from one evaluation to the next; 0: off
    games: Many = 100  # of each evaluation; with opponents, against each of them
    opponents: CodeNames = ()  # scripted ones of the game, or module:Class; a game without opponents has none
    openings: Plies | Auto = AUTO  # random plies that begin each game of a table; auto: 4 in games without chance


class Config(GamesConfig, frozen=True):
    """Everything a run needs."""

    opponents: OpponentsConfig = OpponentsConfig()
    network: NetworkConfig = NetworkConfig()
    workers: WorkersConfig = WorkersConfig()
    server: ServerConfig = ServerConfig()
    learner: LearnerConfig = LearnerConfig()
    replay: ReplayConfig = ReplayConfig()
    search: SearchConfig = SearchConfig()  # of learner.algorithm alphazero
    cluster: ClusterConfig = ClusterConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    metrics: tuple[Literal["tensorboard", "csv", "wandb", "mlflow"], ...] = ("tensorboard", "csv")  # curves go there
    prometheus_port: Port = 0  # the newest figures of the curves at 127.0.0.1:PORT/metrics; 0: off
    metrics_callback: ProgramName = ""  # module:function of yours that gets each report of the curves
    run_dir_access: Literal["owner", "group"] = "owner"  # who may read the run directory
    store: str = ""  # s3://bucket/run or another URL of fsspec's: checkpoints are copied there, and resumed from there
    store_milestone_decisions: Positive = 1_000_000  # the first checkpoint past each multiple stays there for good
    notice_every_decisions: NonNegative = 1_000_000  # a notice each so many, where SIMUL_NOTIFY has addresses; 0: none

    @property
    def points_of_value(self) -> float:
        """Points of the game, one decision earlier, that a network's value of 1 stands for."""
        return self.learner.discount / float(getattr(self.game_section, "reward_scale", 1.0))

    @property
    def workers_of_a_server(self) -> int:
        """How many workers play on one server, at most."""
        return -(-self.workers.count // self.cluster.servers.count)

    def server_settings(self, index: int) -> ServerConfig:
        """`server` of one of several servers: its index is added to each port, and as `-INDEX` to an ipc path."""
        server = self.server
        if not index:
            return server
        port = server.prometheus_port
        return msgspec.structs.replace(
            server,
            endpoint=_endpoint_of(server.endpoint, index),
            prometheus_port=port + index if port else 0,
        )

    def horizon(self, seats: int, kept: int = 0, decisions: int = 0) -> int:
        """Learned decisions at which the learner's schedules end.

        With `learner.total_decisions: auto` the run's first start says it: those that are learned of its
        `stop_after_decisions` counted ones, see `learned_share`; LONG_HORIZON where that is 0.

        Args:
            seats: of the game.
            kept: the horizon of the checkpoint that the learner resumes from; 0: none.
            decisions: those learned so far. An older run, without a horizon, has LONG_HORIZON.
        """
        if self.learner.total_decisions != AUTO:
            return self.learner.total_decisions
        if kept or decisions or not self.stop_after_decisions:
            return kept or LONG_HORIZON
        return max(round(self.stop_after_decisions * self.learned_share(seats)), 1)

    def learned_share(self, seats: int) -> float:
        """Decisions that are learned from per decision that a run counts; of searched games it counts the samples."""
        return 1.0 if self.learner.algorithm == "alphazero" else self.opponents.learned_share(seats)

    def fingerprint(self) -> str:
        """First 16 hex digits of SHA-256 over all values that a run's learning depends on.

        A game's section and shares count where they are not the defaults, or where the game is `in_every_fingerprint`;
        LATER_KEYS and LATER_SECTIONS count where they are not the defaults.
        """
        plain = msgspec.to_builtins(msgspec.structs.replace(self, run_dir="", stop_after_decisions=0))
        plain["learner"]["total_decisions"] = self.horizon(seats=1)
        for name in WATCHING:
            del plain[name]
        defaults = msgspec.to_builtins(type(self)())
        for each in (plain, defaults):
            del each["cluster"]["placement"]
        later = [name for name, game in GAMES.items() if not game.in_every_fingerprint]
        _drop(plain, [*later, *LATER_SECTIONS], defaults)
        for section, keys in LATER_KEYS.items():
            _drop(plain.get(section, {}), keys, defaults[section])
        always = {kind for game in GAMES.values() if game.in_every_fingerprint for kind in game.opponents}
        _drop(plain["opponents"], [kind for kind in plain["opponents"] if kind not in always], defaults["opponents"])
        return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()[:16]


def _endpoint_of(endpoint: str, index: int) -> str:
    host, _, port = endpoint.rpartition(":")
    if endpoint.startswith("tcp://"):
        return f"{host}:{int(port) + index}" if port.isdecimal() else endpoint
    return f"{endpoint}-{index}" if endpoint else ""


def _drop(plain: dict[str, Any], keys: Iterable[str], defaults: Mapping[str, Any]) -> None:
    """Remove those of `keys` whose value is the default."""
    for key in keys:
        if key in plain and plain[key] == defaults[key]:
            del plain[key]
