"""The section `search`: tree search in workers, guided by the network's policy and value."""

from __future__ import annotations

from typing import Literal

from simul.common.config.section import (
    Few,
    Many,
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Section,
    Share,
)


class SearchConfig(Section, frozen=True):
    """How a move is searched. Values lie in [-1, 1]; a game's returns are brought there by `outcome`."""

    method: Literal["gumbel", "puct"] = "gumbel"  # gumbel: Danihelka et al. 2022; puct: Silver et al. 2018
    simulations: Many = 64  # of a full search, which gives a policy target
    full_share: Share = 1.0  # of the moves with a full search; the others have a cheap one and give no policy target
    cheap_simulations: Many = 16  # of a cheap search, which has no Dirichlet noise
    considered_actions: Positive = 16  # gumbel: actions of the root that sequential halving starts with
    visit_offset: NonNegativeFloat = 50.0  # gumbel: c_visit, value scale is (c_visit + most visits) * c_scale
    value_scale: PositiveFloat = 0.15  # gumbel: c_scale
    exploration: PositiveFloat = 1.25  # puct: c_init
    exploration_base: PositiveFloat = 19652.0  # puct: c_base, visits from which exploration grows
    first_play_reduction: NonNegativeFloat = 0.2  # puct: an unvisited action is worth less than its parent by so much
    noise_share: Share = 0.25  # puct: share of Dirichlet noise in the priors of the root
    noise_total: PositiveFloat = 10.0  # puct: the noise's alpha is so much divided by the legal actions
    temperature: NonNegativeFloat = 1.0  # of the first `temperature_moves` moves of a game; 0: the best action
    temperature_moves: NonNegative = 16  # searched ones of all seats together
    final_temperature: NonNegativeFloat = 0.0  # of the moves after them
    reuse_tree: bool = True  # keep the part of the tree below the move that was played
    transpositions: bool = True  # equal observations after equally many moves share a node of the tree
    cache_positions: NonNegative = 10_000  # evaluations kept by a worker, for one version of the weights; 0: none
    symmetries: bool = True  # where the game has symmetries: turn the positions that are evaluated, and the samples
    requests_in_flight: Few = 2  # a worker's games are split into so many groups, evaluated in turn
    worlds: NonNegative = 0  # drawn for an action in `simul eval`, without alphazero; 0: policies play without search
    candidates: Positive = 4  # tried in every world: the actions that the policy likes best
    td_lambda: Share = 1.0  # of the outcome that is learned; below 1 the values that the searches found are mixed in
    outcome: Literal["returns", "ranks"] = "returns"  # ranks: share of the others beaten, less the share that won
    return_scale: PositiveFloat = 1.0  # returns: divided by it, clipped to [-1, 1]
