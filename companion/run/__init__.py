"""One chapter with parameters of the reader's choice, or a grid of such runs."""
