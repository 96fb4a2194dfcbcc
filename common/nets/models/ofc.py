"""`ofc`: Open Face Chinese. The score of an action is that of the three rows it makes.

A placement puts some of the held cards into each row. There are few distinct results of a row: one for each subset of
the cards. `RowFigures` says what each result makes and which cards help it, a small network for each row embeds it,
and an action's hidden units are the sum of its three rows' embeddings, of what they make together, and of an encoding
of the whole observation.

B = rows of a batch, n = subsets of the held cards, A = actions of a head, K = hidden units of an action.
"""

from __future__ import annotations

import copy
from itertools import product
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from simul.common.config.games.ofc import INSTEAD
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork, compute_dtype
from simul.common.nets.layers.card_rows import (
    COMPLETE,
    FANTASY,
    FIGURES,
    MOST,
    RANK_CODES,
    RANKS,
    ROYALTY,
    SIZES,
    SUIT_CODES,
    SUITS,
    TOP,
    VALUE,
    RowFigures,
)
from simul.common.nets.layers.lstm import make_packing
from simul.common.protocol.specs import GameSpec

DISCARD = 3  # instead of a row
OPENINGS = tuple(rows for rows in product(range(3), repeat=5) if rows.count(TOP) <= SIZES[TOP])
LATER = tuple(
    tuple(DISCARD if card == discard else rows[card - (card > discard)] for card in range(3))
    for discard in range(3)
    for rows in product(range(3), repeat=2)
)
STREET_CARDS, STREETS = 3, 5
TOGETHER = 9  # figures of an action's three rows together


class Cards(NamedTuple):
    """What of an observation is read as cards.

    Attributes:
        rows: float32 [B, 3, 2], code of the ranks and code of the suits of the own rows.
        held: float32 [B, 5, 2], the same of each held card; 0 where there is none.
        ranks, suits: float32 [B, 13], [B, 4], cards of each that the seat may expect to be dealt.
    """

    rows: Tensor
    held: Tensor
    ranks: Tensor
    suits: Tensor

    def select(self, index: Tensor) -> Cards:
        """Some of the B rows."""
        return Cards(*(part.index_select(0, index) for part in self))


class PlacementHead(nn.Module):
    """Logits of actions that place the same number of cards.

    Args:
        placements: of each action, the row of each card, or DISCARD.
        context: width of the observation's encoding.
        row: hidden units of a row's network.
        joint: K.
        second: units of a second hidden layer of an action; 0: there is none.
        empty: the rows are, so all three have the same n results; what they make together is left aside.
    """

    subsets: Tensor
    contents: Tensor

    def __init__(
        self, placements: tuple[tuple[int, ...], ...], *, context: int, row: int, joint: int, second: int, empty: bool
    ) -> None:
        super().__init__()
        chosen = sorted({tuple(row == place for place in action) for action in placements for row in range(3)})
        number = {subset: index for index, subset in enumerate(chosen)}
        contents = [[number[tuple(row == place for place in action)] for action in placements] for row in range(3)]
        self.register_buffer("subsets", torch.tensor(chosen, dtype=torch.float32), persistent=False)
        self.register_buffer("contents", torch.tensor(contents), persistent=False)
        self.empty = empty
        self.row_weight = _weights(FIGURES, row)
        self.row_context = nn.Linear(context, 3 * row)
        self.row_out = _weights(row, joint)
        self.context = nn.Linear(context, joint)
        self.together = None if empty else nn.Linear(TOGETHER, joint, bias=False)
        self.second = nn.Linear(joint, second) if second else None
        self.logit = nn.Linear(second or joint, 1)
        self.direct = nn.Linear(context, len(placements))
        self.worth = nn.Linear(second or joint, 1)
        for last in (self.logit, self.direct, self.worth):
            nn.init.normal_(last.weight, std=0.01)
            nn.init.zeros_(last.bias)

    def forward(self, figures: RowFigures, cards: Cards, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, A], and the policy's mean over actions of what they add to the value [B].

        `context`: float32 [B, context]. `mask`: bool [B, A], True = legal.
        """
        batch = context.shape[0]
        found = self.results(figures, cards)
        of_state = self.row_context(context).unflatten(1, (3, 1, -1)).permute(1, 2, 0, 3)  # (3, 1, B, H)
        hidden = torch.bmm(found.expand(3, -1, -1, -1).flatten(1, 2), self.row_weight).unflatten(1, (-1, batch))
        rows = torch.bmm((hidden + of_state).relu().flatten(1, 2), self.row_out)
        rows = rows.unflatten(1, (-1, batch))  # (3, n, B, K)
        units = self.context(context)
        for row in range(3):
            units = units + rows[row].index_select(0, self.contents[row])  # (A, B, K)
        if self.together is not None:
            units = units + self.together(self.figures_together(found))
        units = units.relu()
        if self.second is not None:
            units = self.second(units).relu()
        logits = self.logit(units).squeeze(2).transpose(0, 1) + self.direct(context)
        probability = logits.detach().masked_fill(~mask, -1e9).softmax(1)  # no legal action: finite all the same
        worth = (probability * self.worth(units).squeeze(2).transpose(0, 1)).sum(1)
        return logits, worth

    def results(self, figures: RowFigures, cards: Cards) -> Tensor:
        """Figures, float32 [3, n, B, FIGURES] ([1, n, B, FIGURES] of empty rows), of rows with subsets of the cards.

        Action a makes number `contents[row, a]` of a row.
        """
        held = (cards.held[:, None, : self.subsets.shape[1]] * self.subsets[:, :, None]).sum(2)  # (B, n, 2)
        codes = held.permute(2, 1, 0)[:, None]
        if not self.empty:
            codes = codes + cards.rows.permute(2, 1, 0)[:, :, None]  # (2, 3, n, B)
        found: Tensor = figures(codes[0], codes[1], cards.ranks, cards.suits)
        return found

    def figures_together(self, found: Tensor) -> Tensor:
        """What the three rows of each action make, float32 [A, B, TOGETHER]. `found`: of `results`, [3, n, B, FIGURES].

        A foul for certain; royalties and Fantasyland where there is none; how far bottom and middle, middle and top are
        in order; whether they are not, and still may be.
        """
        rows = [found[row, :, :, : FANTASY + 1].index_select(0, self.contents[row]).unbind(2) for row in range(3)]
        top, middle, bottom = rows
        lower, upper = bottom[VALUE] - middle[VALUE], middle[VALUE] - top[VALUE]
        foul = (lower < 0) & (bottom[COMPLETE] > 0) | (upper < 0) & (middle[COMPLETE] > 0)  # a row's value never falls
        legal = (~foul).float()
        royalty = sum(figures[ROYALTY + row] for row, figures in enumerate(rows))
        order = [(scale * gap).clamp(-1, 1) for scale in (1, 8) for gap in (lower, upper)]
        wrong = [(gap < 0).float() * legal for gap in (lower, upper)]
        return torch.stack((1 - legal, legal * royalty, legal * top[FANTASY], *order, *wrong), 2)


def _weights(inputs: int, outputs: int) -> nn.Parameter:
    """Of a linear layer for each row, [3, inputs, outputs]."""
    return nn.Parameter(torch.randn(3, inputs, outputs) * (2 / inputs) ** 0.5)


class OfcNetwork(RecurrentNetwork):
    """See the module. No memory: an observation holds all that its seat knows.

    Args:
        hidden: units of both layers of the observation's encoding.
        row: hidden units of a row's network on streets 2 to 5; half as many on street 1.
        joint: hidden units of an action on streets 2 to 5; an eighth on street 1, which has 232 actions.

    Raises:
        ConfigError: the layout is not that of Open Face Chinese without jokers, or a width is below 2.
    """

    reads_exactly = True
    card_codes: Tensor
    plane_codes: Tensor

    def __init__(self, spec: GameSpec, hidden: int = 128, row: int = 32, joint: int = 48) -> None:
        super().__init__()
        for name, units in (("hidden", hidden), ("row", row), ("joint", joint)):
            if not (isinstance(units, int) and units >= 2):
                raise ConfigError(f"network.options: {name} is a whole number of units from 2 on, not {units}.")
        self._rows, self._held, self._unseen, self._street = _columns(spec)
        self.figures = RowFigures()
        self.body = nn.Sequential(
            nn.Linear(spec.observation_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.opening = PlacementHead(
            OPENINGS, context=hidden, row=row // 2, joint=max(joint // 8, 1), second=0, empty=True
        )
        self.later = PlacementHead(LATER, context=hidden, row=row, joint=joint, second=joint // 2, empty=False)
        self.value_head = nn.Linear(hidden, 1)
        nn.init.zeros_(self.value_head.bias)
        ranks = torch.tensor([*RANK_CODES, *[0] * SUITS], dtype=torch.float32)
        suits = torch.tensor([*[0] * RANKS, *SUIT_CODES], dtype=torch.float32)
        self.register_buffer("card_codes", torch.stack((ranks, suits), 1), persistent=False)  # (17, 2)
        planes = torch.stack((ranks[:RANKS].repeat_interleave(SUITS), suits[RANKS:].repeat(RANKS)), 1)
        self.register_buffer("plane_codes", planes, persistent=False)  # (52, 2)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`. Both heads run for every row: shapes do not depend on the cards."""
        x = self._encode(observation)
        cards, opens = self._cards(observation)
        with torch.autocast(x.device.type, enabled=False):
            first, first_worth = self.opening(self.figures, cards, x, mask[:, : len(OPENINGS)])
            later, later_worth = self.later(self.figures, cards, x, mask[:, len(OPENINGS) :])
            zero = torch.zeros((), device=x.device)
            logits = torch.cat((torch.where(opens[:, None], first, zero), torch.where(opens[:, None], zero, later)), 1)
            value = self.value_head(x).squeeze(1) + torch.where(opens, first_worth, later_worth)
        return logits, value, state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`: each row by the head of its street."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        observation, mask = packing.pack(observation), packing.pack(mask)
        x = self._encode(observation)
        cards, opens = self._cards(observation)
        with torch.autocast(x.device.type, enabled=False):
            value = self.value_head(x).squeeze(1)
            logits = x.new_zeros(mask.shape)
            for rows, head, actions in (
                (opens, self.opening, slice(0, len(OPENINGS))),
                (~opens, self.later, slice(len(OPENINGS), None)),
            ):
                index = rows.nonzero().squeeze(1)
                if not len(index):
                    continue
                found, worth = head(
                    self.figures, cards.select(index), x.index_select(0, index), mask[:, actions].index_select(0, index)
                )
                value = value.index_add(0, index, worth)
                padded = found.new_zeros((len(index), mask.shape[1]))
                padded[:, actions] = found
                logits = logits.index_copy(0, index, padded)
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> Self:
        """As `RecurrentNetwork.lowered`."""
        network = copy.deepcopy(self)
        network.body.to(dtype)
        return network

    def _encode(self, observation: Tensor) -> Tensor:
        """Wire dtype or float32 [B, D] -> float32 [B, hidden]."""
        weight = next(self.body.parameters())
        x: Tensor = self.body(observation.to(compute_dtype(weight)))
        return x.float()

    def _cards(self, observation: Tensor) -> tuple[Cards, Tensor]:
        """The cards, and bool [B]: True on street 1."""
        observation = observation.float()
        rows = observation[:, self._rows].unflatten(1, (3, RANKS * SUITS, 1))
        held = observation[:, self._held].unflatten(1, (MOST, RANKS + SUITS, 1))
        unseen = observation[:, self._unseen]
        street = observation[:, self._street]
        left = torch.arange(STREETS - 1, -1, -1, device=street.device)  # streets to come
        to_come = STREET_CARDS * (street * left).sum(1, keepdim=True)
        share = to_come / (SUITS * unseen[:, :RANKS].sum(1, keepdim=True).abs() + 1)
        ranks, suits = SUITS * unseen[:, :RANKS] * share, RANKS * unseen[:, RANKS:] * share
        cards = Cards((rows * self.plane_codes).sum(2), (held * self.card_codes).sum(2), ranks, suits)
        return cards, street[:, 0] > 0.5


def _columns(spec: GameSpec) -> tuple[slice, slice, slice, slice]:
    """Columns of the own rows' planes, of the held cards, of unseen cards and of the street. Raises ConfigError."""
    parts = {part.name: part for part in spec.layout}
    wanted = [
        *((f"cards.own.{row}", RANKS * SUITS) for row in ("top", "middle", "bottom")),
        *((f"hand.{card}", RANKS + SUITS) for card in range(MOST)),
        ("unseen", RANKS + SUITS),
        ("street", STREETS),
    ]
    for name, size in wanted:
        if name not in parts or parts[name].size != size:
            found = f"has one of {parts[name].size}" if name in parts else "has none"
            raise ConfigError(
                f"The network ofc reads Open Face Chinese without jokers: a slice {name} of {size} numbers; "
                f"{spec.name} {found}. {INSTEAD}"
            )
    if spec.num_actions != len(OPENINGS) + len(LATER):
        raise ConfigError(
            f"The network ofc scores {len(OPENINGS) + len(LATER)} actions; {spec.name} has {spec.num_actions}. "
            f"{INSTEAD}"
        )
    spans = []
    for first, last in (("cards.own.top", "cards.own.bottom"), ("hand.0", f"hand.{MOST - 1}")):
        spans.append(slice(parts[first].start, parts[last].start + parts[last].size))
    unseen, street = (slice(parts[name].start, parts[name].start + parts[name].size) for name in ("unseen", "street"))
    return spans[0], spans[1], unseen, street
