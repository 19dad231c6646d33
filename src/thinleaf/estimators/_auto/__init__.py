"""What a fit to a budget is made of: who is trained, how it is judged, what is chosen."""
