"""The configuration: schema, strict loading, validation; the facts that a checkpoint carries of it."""
