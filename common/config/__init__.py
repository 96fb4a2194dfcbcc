"""The configuration: schema, strict loading, validation; and the run directory that roles find their files in."""
