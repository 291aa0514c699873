"""Formats of images and audio."""
