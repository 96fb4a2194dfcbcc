"""Base of all messages: a type tag and the declaration of the tensors behind the header."""

from __future__ import annotations

import msgspec

PROTOCOL = "simul/1"
LEARNER_POLICY = "learner"  # name of the policy whose weights the learner sends; others are frozen


class Message(
    msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """Base. The key `type` holds the tag; `tensors` declares the raw frames behind the header: (name, dtype, shape)."""

    tensors: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
