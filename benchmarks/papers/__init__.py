"""The papers' tables and figures, one script each, and the page that is made of their results."""
