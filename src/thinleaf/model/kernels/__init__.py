"""Compiled loops of prediction."""
