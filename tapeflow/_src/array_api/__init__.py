"""The array API standard over Tapeflow's operations; `tapeflow.array_api` shows its names."""
