"""What must hold for thinleaf."""
