"""The former name of `simul.launch`; remove it with the next version."""

raise ImportError(
    "simul.common.launch is simul.launch now (simul.common.launch.api: simul.launch.api): change the import. "
    "simul.train, simul.evaluate and simul.serve are where they were."
)
