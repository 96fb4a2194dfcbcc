"""`simul ...` with stand-ins for the roles."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.command import OFTEN, Command

STAND_IN = Path(__file__).with_name("stand_in_role.py")


PROGRAM = f"""
{OFTEN}
import sys
from simul.launch.cli import main
from simul.launch.evaluation import eval_runner
from simul.launch.supervisor import evaluations, inference_only, supervisor
stand_in = sys.argv.pop(1)
command = lambda role: [sys.executable, stand_in, role]
class Supervisor(supervisor.Supervisor):
    def __init__(self, config, run_dir, display, **options):
        super().__init__(config, run_dir, display, command, **options)
supervisor.Supervisor = Supervisor
of_checkpoint = evaluations.evaluation_command
def evaluation_command(config, checkpoint):
    line = of_checkpoint(config, checkpoint)
    return [*sys.orig_argv[:3], stand_in, "--stop-at-eof", *line[line.index("eval"):]]
evaluations.evaluation_command = evaluation_command
eval_runner.evaluate.__kwdefaults__["command"] = inference_only.serve.__kwdefaults__["command"] = command
sys.exit(main(sys.argv[1:]))
"""


class Simul(Command):
    """`simul ...` whose roles are stand-ins."""

    def __init__(self, root: Path, *arguments: str, stdout: int | None = None, program: str = PROGRAM) -> None:
        super().__init__([sys.executable, "-c", program, str(STAND_IN), *arguments], root, stdout)

    def wait_until_training(self) -> None:
        self.wait_for(lambda status: status.get("phase") == "training" and status["server"].get("decisions"))
