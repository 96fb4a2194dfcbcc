"""Clients of the inference server, for workers and external agents. Imports neither torch nor numba.

`InferenceClient` takes one `Decision` per row, resends and reconnects. `ColumnClient` takes whole columns and does
neither: for load tests and for hundreds of envs in one process.
"""

from simul.common.client.client import InferenceClient, Replies
from simul.common.client.columns import Answer, ColumnClient, Columns
from simul.common.client.evaluation import NO_SESSION, Evaluation
from simul.common.client.steps import pack_step

__all__ = [
    "NO_SESSION",
    "Answer",
    "ColumnClient",
    "Columns",
    "Evaluation",
    "InferenceClient",
    "Replies",
    "pack_step",
]
