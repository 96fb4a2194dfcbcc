"""One mind playing every table: centralized batched inference for reinforcement learning in turn-based games.

The folders beside this file are links to those at the top of the checkout, so that every tool sees one package.
"""
