"""A training run in the cells of a notebook: progress is shown, and an interrupt ends the run cleanly.

Needs nbclient and ipykernel beside simul; called by `.ci/wheel`.
"""

from __future__ import annotations

import asyncio
import threading
import time

import nbformat
from nbclient import NotebookClient

TRAIN = """
import simul
run = simul.train("cartpole", mode="test", run_dir="runs/notebook")
run.wait()["decisions"]
"""
INTERRUPTED = """
with simul.train("cartpole", run_dir="runs/interrupted") as run:
    summary = run.wait()
summary["decisions"]
"""


def printed(cell: nbformat.NotebookNode) -> str:
    """What the cell shows: streams and its value."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(texts)


def interrupt_when_shown(client: NotebookClient, cell: nbformat.NotebookNode) -> None:
    """As the stop button does, once the cell shows the rate of the run."""
    while "decisions/s" not in printed(cell):
        time.sleep(0.2)
    asyncio.run(client.km.interrupt_kernel())


def main() -> None:
    """Raises AssertionError or CellExecutionError."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(TRAIN), nbformat.v4.new_code_cell(INTERRUPTED)]
    )
    client = NotebookClient(notebook, timeout=300)
    with client.setup_kernel():
        client.execute_cell(notebook.cells[0], 0)
        shown = printed(notebook.cells[0])
        assert "episodes:" in shown, shown
        assert int(shown.split()[-1]) >= 5000, shown
        threading.Thread(target=interrupt_when_shown, args=[client, notebook.cells[1]], daemon=True).start()
        client.execute_cell(notebook.cells[1], 1)  # without a rate nothing interrupts it: the cell times out
        shown = printed(notebook.cells[1])
        assert "stopping" in shown, shown
        assert int(shown.split()[-1]) > 0, shown


if __name__ == "__main__":
    main()
    print("the notebook works")
