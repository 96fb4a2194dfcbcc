"""The configuration: schema, strict loading, validation."""
