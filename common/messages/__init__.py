"""Every message that crosses a process boundary, typed; a module for each pair that talks, grouped by receiver.

A message travels as one MessagePack frame (the struct) followed by the raw tensor frames that
`common.codec` declares in it. Tensors of a message are listed in its docstring as name: dtype [shape].
N is the number of rows, D the observation size, A the number of actions, T the unroll length.
"""

from common.messages.base import PROTOCOL, Message
from common.messages.control import (
    FROM_CONTROL,
    TO_CONTROL,
    ControlAnswer,
    ListPolicies,
    LoadPolicy,
    PolicyFacts,
    Shutdown,
    UnloadPolicy,
)
from common.messages.learning import FROM_LEARNER, TO_LEARNER, Credit, ServerHello, Unroll, Weights, WeightsAck
from common.messages.reports import TO_SUPERVISOR, Report
from common.messages.serving import (
    ABORTED,
    DECISION,
    GREEDY,
    RECORD,
    START,
    TERMINATED,
    TO_CLIENT,
    TO_SERVER,
    TRUNCATED,
    Actions,
    Close,
    Error,
    Evaluate,
    Evaluated,
    Figures,
    Hello,
    Ping,
    Pong,
    SharedMemory,
    StatusRequest,
    Step,
    Welcome,
)

__all__ = [
    "ABORTED",
    "DECISION",
    "FROM_CONTROL",
    "FROM_LEARNER",
    "GREEDY",
    "PROTOCOL",
    "RECORD",
    "START",
    "TERMINATED",
    "TO_CLIENT",
    "TO_CONTROL",
    "TO_LEARNER",
    "TO_SERVER",
    "TO_SUPERVISOR",
    "TRUNCATED",
    "Actions",
    "Close",
    "ControlAnswer",
    "Credit",
    "Error",
    "Evaluate",
    "Evaluated",
    "Figures",
    "Hello",
    "ListPolicies",
    "LoadPolicy",
    "Message",
    "Ping",
    "PolicyFacts",
    "Pong",
    "Report",
    "ServerHello",
    "SharedMemory",
    "Shutdown",
    "StatusRequest",
    "Step",
    "UnloadPolicy",
    "Unroll",
    "Weights",
    "WeightsAck",
    "Welcome",
]
