"""Tools for this repository: `python -m tools.surface`, `python -m tools.coverage`."""
