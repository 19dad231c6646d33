"""Trees of more rows than memory holds: a top from a sample, and a subtree for each part."""
