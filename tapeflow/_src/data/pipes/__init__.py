"""The stages of a dataset, one file for each kind."""
