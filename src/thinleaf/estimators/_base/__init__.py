"""What the public classes share."""
