"""Where iterators of TensorFlow 1's graphs are, kept by `tf.compat.v1.train.Saver`."""

import pytest

import tapeflow as tf
from tapeflow.compat import v1


class TestSavedIterators:
    def build(self, **kwargs):
        graph = tf.Graph()
        with graph.as_default():
            v = v1.get_variable("v", initializer=1.0)
            iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(20).shuffle(20).batch(2))
            saveable = tf.data.experimental.make_saveable_from_iterator(iterator, **kwargs)
            v1.add_to_collection(v1.GraphKeys.SAVEABLE_OBJECTS, saveable)
            return graph, v, iterator, iterator.get_next(), v1.train.Saver()

    def test_a_saver_keeps_where_an_iterator_is(self, tmp_path):
        graph, v, iterator, element, saver = self.build()
        with v1.Session(graph=graph) as session:
            session.run([v.initializer, iterator.initializer])
            first = [session.run(element).tolist() for _ in range(4)]
            path = saver.save(session, str(tmp_path / "m"))
            rest = [session.run(element).tolist() for _ in range(6)]
            assert sorted(n for batch in first + rest for n in batch) == list(range(20))
            saver.restore(session, path)
            assert [session.run(element).tolist() for _ in range(6)] == rest
        graph, v, _, element, saver = self.build()
        with v1.Session(graph=graph) as session:
            saver.restore(session, path)
            assert session.run(v) == 1.0 and [session.run(element).tolist() for _ in range(6)] == rest
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)

    def test_state_outside_of_the_dataset(self, tmp_path):
        for policy, fails in ((None, True), ("fail", True), ("ignore", False)):
            with tf.Graph().as_default(), v1.Session() as session:
                dataset = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([]))
                iterator = v1.data.make_initializable_iterator(dataset)
                saveable = tf.data.experimental.make_saveable_from_iterator(iterator, policy)
                saver = v1.train.Saver([saveable])
                session.run(iterator.initializer)
                if fails:
                    with pytest.raises(tf.errors.FailedPreconditionError, match="stateful"):
                        saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
                else:
                    assert saver.save(session, str(tmp_path / "m"), write_meta_graph=False)

    def test_what_cannot_be_saved(self, tmp_path):
        with pytest.raises(ValueError, match=r"tf\.train\.Checkpoint"):
            tf.data.experimental.make_saveable_from_iterator(iter(tf.data.Dataset.range(3)))
        with pytest.raises(ValueError, match="Supported values include 'warn'"):
            self.build(external_state_policy="perhaps")
        graph, v, _, _, saver = self.build()
        with v1.Session(graph=graph) as session:
            session.run(v.initializer)
            with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
                saver.save(session, str(tmp_path / "m"))
