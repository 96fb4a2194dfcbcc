"""What all roles agree on. Imports no role."""
