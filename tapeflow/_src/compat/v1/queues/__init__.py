"""Queues and the input pipelines that are made of them."""
