"""What crosses a process boundary: messages and their codec, error codes, specs, decisions, shared-memory layouts."""
