"""Frozen typed configuration, loaded strictly (`loader.py`). One comment per field; the YAML files repeat them."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
Few = Annotated[int, Meta(ge=1, le=1024)]  # processes, threads
Many = Annotated[int, Meta(ge=1, le=10**6)]  # of things that take memory each
Port = Annotated[int, Meta(ge=0, le=65535)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
PositiveFloat = Annotated[float, Meta(gt=0.0)]
NonNegativeFloat = Annotated[float, Meta(ge=0.0)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every section: frozen, unknown keys are errors."""


class OpponentsConfig(Section, frozen=True):
    """Opponents of the learner's seat, as shares of the games. They must add up to 1."""

    self_play: Share = 1.0  # the current policy on every seat; all seats learn
    past: Share = 0.0  # frozen past selves; until the first exists, this share plays itself
    random: Share = 0.0
    max_base_power: Share = 0.0
    simple_heuristics: Share = 0.0
    damage: Share = 0.0  # the attack that does most now, by the damage formula


class RewardsConfig(Section, frozen=True):
    """Rewards of a Pokémon seat. Every weight except win_loss is shaping; 0 turns it off."""

    win_loss: float = 1.0  # at the end: win +, loss -, tie 0
    knockout: NonNegativeFloat = 0.0  # + for each foe that faints, - for each own Pokemon
    pokemon_count: NonNegativeFloat = 0.0  # at the end: for each living Pokemon ahead, - for each behind
    hp_delta: NonNegativeFloat = 0.0  # for each full bar of hp gained on the foe, - for each lost
    fail_immune: NonNegativeFloat = 0.0  # - for each own move that fails or meets an immunity
    switch_penalty: NonNegativeFloat = 0.0  # - for each own switch where a move was possible
    free_switches: NonNegative = 0  # so many switches in a row cost nothing (Maple: 7)
    turn_penalty: NonNegativeFloat = 0.0  # - for each turn played
    potential_based: bool = True  # shaping is taken back at the end, so that it changes no optimum; false: it is kept


class ShowdownAddress(Section, frozen=True):
    """A Showdown server that battles may be played on."""

    host: str
    port: Port
    max_connections: Annotated[int, Meta(ge=2)] = 4  # of all workers; two accounts are a pair that plays each other


class PokemonConfig(Section, frozen=True):
    """Battles on a local simulator host."""

    format: str = "gen9randombattle"
    teams: str = ""  # file or folder of teams (Showdown's export) for formats that draw none; both seats draw from it
    max_turns: Positive = 300  # a longer battle is truncated (Showdown's own limit is 1000)
    team_uses: Positive = 4  # of formats that draw teams: a team plays so many battles of training; 1: all are new
    accelerate: bool = True  # apply our speed-up to the pinned simulator, in memory
    encoder: Literal["host", "python"] = "host"  # where observations are written: in the simulator's process, or here
    transport: Literal["ipc", "websocket"] = "ipc"  # a simulator host beside the worker, or Showdown servers
    local_servers: Positive = 1  # websocket: so many servers of each worker's own, where `servers` names none
    servers: tuple[ShowdownAddress, ...] = ()  # websocket: [{host, port, max_connections}], used instead of our own
    damage_attackers: Literal[0, 3, 6] = 3  # own Pokémon whose damage is observed; of 3, two are likely switches
    set_knowledge: bool = False  # observe what foes may still have, by the sets of random battles
    replies_per_write: NonNegative = 0  # requests that a host gathers before it writes; 0: all that one read asks for
    host_timeout_sec: PositiveFloat = 20.0  # a simulator host that is silent for so long hangs: it is replaced
    rewards: RewardsConfig = RewardsConfig()


class GymnasiumConfig(Section, frozen=True):
    """Any Gymnasium env with a discrete action space."""

    id: str = "CartPole-v1"  # a registered id, or module:Class
    kwargs: dict[str, Any] = {}
    reward_scale: PositiveFloat = 1.0


class NetworkConfig(Section, frozen=True):
    """The network that plays."""

    name: str = "mlp_lstm"  # mlp_lstm | pokemon | module:Class
    options: dict[str, Any] = {}  # keyword arguments of the network


class WorkersConfig(Section, frozen=True):
    """Env workers (no torch, no weights)."""

    count: Few = 1
    envs: Many = 16  # games in flight per worker


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
    """The learner. T is unroll_length, B the unrolls of a batch."""

    algorithm: Literal["ppo", "vtrace", "reinforce"] = "ppo"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    threads: Few = 1
    unroll_length: Many = 32
    batch_steps: Annotated[int, Meta(ge=1, le=10**8)] = 4096  # steps learned from per update, in whole unrolls
    minibatches: Positive = 2
    epochs: Positive = 1
    learning_rate: PositiveFloat = 3e-4
    final_learning_rate: NonNegativeFloat = 0.0  # linear schedule over total_decisions
    total_decisions: Positive = 20_000_000  # horizon of the schedules; training goes on at the final values
    discount: Share = 0.999
    gae_lambda: Share = 0.95
    clip: PositiveFloat = 0.2
    value_coefficient: NonNegativeFloat = 0.5
    entropy_coefficient: NonNegativeFloat = 0.01
    final_entropy_coefficient: NonNegativeFloat = 0.001
    rho_clip: PositiveFloat = 1.0  # V-trace
    c_clip: PositiveFloat = 1.0  # V-trace
    max_gradient_norm: PositiveFloat = 0.5
    max_policy_lag: Positive = 20  # older unrolls are dropped and counted
    max_skipped_minibatches: Positive = 100  # so many in a row without a step (a gradient is not finite) end the run
    checkpoint_every_sec: PositiveFloat = 60.0
    milestone_every_decisions: Positive = 500_000  # kept for good
    past_every_decisions: Positive = 250_000  # a frozen past self joins the league
    past_resident: NonNegative = 3  # at most so many past selves are served at once


class Config(Section, frozen=True):
    """Everything a run needs."""

    game: str = "gymnasium"  # pokemon | gymnasium | module:Class of an EnvSource-compatible env
    game_options: dict[str, Any] = {}  # keyword arguments of module:Class
    run_dir: NonEmptyText = "runs/default"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    stop_after_decisions: NonNegative = 0  # 0: until Ctrl-C
    pokemon: PokemonConfig = PokemonConfig()
    gymnasium: GymnasiumConfig = GymnasiumConfig()
    opponents: OpponentsConfig = OpponentsConfig()
    network: NetworkConfig = NetworkConfig()
    workers: WorkersConfig = WorkersConfig()
    server: ServerConfig = ServerConfig()
    learner: LearnerConfig = LearnerConfig()

    def fingerprint(self) -> str:
        """First 16 hex digits of SHA-256 over all values but the run directory."""
        plain = msgspec.structs.replace(self, run_dir="", stop_after_decisions=0)
        return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()[:16]
