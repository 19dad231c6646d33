"""Models without Python: a C header that predicts with model files, and the same for the web."""
