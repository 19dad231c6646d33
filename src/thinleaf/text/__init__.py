"""Texts as rows, and the recipes that model files carry."""
