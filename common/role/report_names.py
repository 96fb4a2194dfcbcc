"""Names of groups and figures in the reports of env workers, which the program reads."""

from __future__ import annotations

ALL_EPISODES = "all"  # the group of `recent` with every episode
SEAT = "seat_"  # prefix of the group of a seat
OWN_FIGURE = "figure."  # prefix of a game's own figures in a group
OWN_FIGURE_SQUARE = "figure_square."  # prefix of the mean squares of these

# Of `standings`, in an evaluation.
FIRST, SECOND, GROUPS = "first", "second", "groups"
MEASURES = ("score", "rank")  # as the game's own figures with intervals, from the spread of games or of groups
