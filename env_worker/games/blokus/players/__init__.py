"""Scripted opponents for Blokus."""
