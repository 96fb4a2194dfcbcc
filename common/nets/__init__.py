"""Networks, their weights and checkpoints. The only package of `common` that imports torch."""
