"""The former name of `simul.errors`; remove it with the next version."""

raise ImportError("simul.common.protocol.errors is simul.errors now: change the import.")
