"""Views of the objects below an object."""

import tapeflow as tf


class Holder(tf.__internal__.tracking.AutoTrackable):
    """It holds a table for saved models alone, as layers of libraries do."""

    def __init__(self):
        self.weight = tf.Variable(1.0)
        self.asked = []

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        found = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel":
            kwargs["cache"]["asked"] = True
            table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            found["parts"] = [table, tf.Variable(2.0)]
        return found


def test_children_depend_on_the_kind_of_file():
    holder, cache = Holder(), {}
    assert "parts" not in tf.train.TrackableView.children(holder)
    assert len(tf.train.TrackableView.children(holder, "savedmodel", cache=cache)["parts"]) == 2 and cache["asked"]


def test_a_view_of_another_kind_finds_what_is_below():
    class View(tf.train.TrackableView):
        @classmethod
        def children(cls, obj, save_type="savedmodel", **kwargs):
            return super().children(obj, save_type, cache={})

    holder = Holder()
    tables = [
        thing
        for thing in View(holder).descendants()
        if isinstance(thing, tf.saved_model.experimental.TrackableResource) and not isinstance(thing, tf.Variable)
    ]
    assert len(tables) == 1
    assert len(tf.train.TrackableView(holder).descendants()) == 3  # the holder, its variable, its empty list
