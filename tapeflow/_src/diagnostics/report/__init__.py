"""The doctor's report as one HTML page."""
