"""Tree search on TurnGame: PUCT and Gumbel AlphaZero, many games at once, one leaf of each in flight.

Trees are arrays and their loops are compiled; the network is asked through EVALUATE. No torch.
"""
