"""Node solvers: from a plain problem to its solution, without state and without a tree."""
