"""Building blocks that networks share."""
