"""What predicts, whatever trained it: trees, their packed form, probabilities, files."""
