"""The public surface is the one that is stored; coverage.md can be made from it."""

import difflib

from tools import coverage
from tools.surface import SURFACE, surface


def test_the_surface_is_the_stored_one():
    stored, now = SURFACE.read_text().splitlines(), surface()
    changes = [line for line in difflib.unified_diff(stored, now, lineterm="", n=0) if not line.startswith("@@")][2:]
    assert not changes, (
        f"The public surface has changed in {len(changes)} lines. If that is meant: python -m tools.surface --write\n"
        + "\n".join(changes[:50])
    )


def test_every_missing_name_has_a_reason():
    """A name of TensorFlow's that is absent belongs to a namespace with a reason, or is listed as still to come."""
    present, absent = coverage.compared()
    assert len(present) > 500
    assert all(coverage.reason_for(name) for name in absent)


def test_coverage_is_a_document():
    text = coverage.document()
    assert text.startswith("# ")
    assert "tf.matmul" not in text.partition("## What is not there")[2].split("`")
