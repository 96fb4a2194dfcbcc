"""The networks that a configuration can name, one module for each name."""
