"""Networks and their weights. The only package of `common` that imports torch."""
