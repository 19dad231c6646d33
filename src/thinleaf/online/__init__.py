"""Trees that learn from one example after the other: Recall Tree, LOMTree, one-against-all."""
