"""AutoGraph: Python control flow as control flow of a graph."""
