"""Types that many threads may decode at once: msgspec must have met them before, or it ends the process."""

from __future__ import annotations

import subprocess
import sys

MET_LATE = """
import sys
import msgspec
from simul.common.client.client import InferenceClient
from simul.common.client.control import ControlClient
from simul.common.role.run_directory import AddressBook, RunDir
from simul.common.config.schema import Config
from simul.common.protocol.messages import *
from simul.common.protocol.specs import GameSpec

class New(msgspec.Struct):
    value: int

met = []
sys.setprofile(lambda frame, event, arg: met.append(frame.f_code.co_name) if event == "call" else None)
for messages in (TO_CLIENT, TO_SERVER, TO_LEARNER, FROM_LEARNER, TO_CONTROL, FROM_CONTROL, TO_SUPERVISOR):
    msgspec.msgpack.Decoder(messages)
for kind in (AddressBook, GameSpec):
    msgspec.json.Decoder(kind)
msgspec.convert({}, Config)
late = met.count("get_class_annotations")
msgspec.json.Decoder(New)
print(late, met.count("get_class_annotations") - late)
"""


def test_the_types_of_clients_are_met_at_import():
    run = subprocess.run([sys.executable, "-c", MET_LATE], capture_output=True, text=True)
    assert run.stdout == "0 1\n", run.stderr
