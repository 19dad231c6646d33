"""Structures: where a tree's training begins, and what can be cut from it afterwards."""
