"""Where an iterator stands: saved and restored, with the seeds that were drawn."""

import numpy as np
import pytest

import tapeflow as tf


def numbers(iterator, count):
    return [int(next(iterator)) for _ in range(count)]


def shuffled_twice():
    dataset = tf.data.Dataset.range(20).shuffle(20).repeat(2)
    return tf.data.Dataset.zip((dataset, tf.data.Dataset.range(40).shuffle(5))).map(lambda a, b: 100 * a + b)


def test_a_checkpoint_keeps_the_order_of_an_unseeded_shuffle(tmp_path):
    first = iter(shuffled_twice())
    numbers(first, 25)
    path = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "c"))
    rest = numbers(first, 15)
    second = iter(shuffled_twice())
    tf.train.Checkpoint(iterator=second).restore(path)
    assert numbers(second, 15) == rest
    assert next(second, None) is None


def test_a_restored_iterator_can_be_saved_again(tmp_path):
    first = iter(shuffled_twice())
    numbers(first, 5)
    path = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "a"))
    second = iter(shuffled_twice())
    checkpoint = tf.train.Checkpoint(iterator=second)
    checkpoint.restore(path)
    assert numbers(second, 5) == numbers(first, 5)
    path = checkpoint.save(str(tmp_path / "b"))
    third = iter(shuffled_twice())
    tf.train.Checkpoint(iterator=third).restore(path)
    assert numbers(third, 30) == numbers(first, 30)


def test_a_numpy_iterator_is_saved_and_restored(tmp_path):
    iterator = tf.data.Dataset.range(10).shuffle(5).as_numpy_iterator()
    numbers(iterator, 3)
    state = iterator.save()
    rest = numbers(iterator, 4)
    iterator.restore(state)
    assert numbers(iterator, 4) == rest
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "c"))
    last = numbers(iterator, 3)
    other = tf.data.Dataset.range(10).shuffle(5).as_numpy_iterator()
    tf.train.Checkpoint(iterator=other).restore(path)
    assert numbers(other, 3) == last


def test_an_iterator_at_its_end_stays_there(tmp_path):
    iterator = iter(tf.data.Dataset.range(2))
    numbers(iterator, 2)
    assert next(iterator, None) is None
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "c"))
    other = iter(tf.data.Dataset.range(2))
    tf.train.Checkpoint(iterator=other).restore(path)
    assert next(other, None) is None


def test_a_cache_is_whole_with_its_last_element(tmp_path):
    for folder in ("", str(tmp_path / "cache")):
        dataset = tf.data.Dataset.range(10).shuffle(10).cache(folder)
        iterator = iter(dataset)
        assert numbers(iterator, 10) == numbers(iter(dataset), 10)


def test_elements_by_number_have_one_order():
    dataset = tf.data.Dataset.range(6).shuffle(6)
    found = [int(tf.data.experimental.at(dataset, i)) for i in range(6)]
    assert sorted(found) == list(range(6))


def test_keys_of_groups_may_be_int32():
    dataset = tf.data.Dataset.range(4).group_by_window(
        key_func=lambda x: tf.cast(x % 2, tf.int32), reduce_func=lambda key, window: window.batch(2), window_size=2
    )
    assert [batch.numpy().tolist() for batch in dataset] == [[0, 2], [1, 3]]
    with pytest.raises(ValueError, match="key_func"):
        tf.data.Dataset.range(4).group_by_window(lambda x: (x, x), lambda key, window: window, window_size=2)
    endless = tf.data.Dataset.range(4).repeat().group_by_window(lambda x: x, lambda key, window: window, window_size=2)
    assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY


def test_padded_shapes_may_depend_on_the_element():
    def reduce(key, window):
        return window.map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=tf.stack([(key + 1) * 4]))

    dataset = tf.data.Dataset.range(4).group_by_window(lambda x: x % 2, reduce, window_size=2)
    assert [batch.shape.as_list() for batch in dataset] == [[2, 4], [2, 8]]
    with pytest.raises(ValueError, match=r"The padded shape \(1,\) is not compatible with the shape \(\)"):
        tf.data.Dataset.range(4).padded_batch(2, padded_shapes=tf.constant([1], tf.int64))
    with pytest.raises(ValueError, match=r"must be a `tf\.int64` vector tensor"):
        tf.data.Dataset.from_tensors([1, 2]).padded_batch(2, padded_shapes=[[1, 1], [1, 1]])


def test_rebatching_into_whole_parts_has_a_static_size():
    dataset = tf.data.Dataset.range(8).batch(4, drop_remainder=True)
    assert dataset.rebatch(2).element_spec.shape == [2]
    assert dataset.rebatch(3).element_spec.shape == [None]


def test_seeds_may_be_tensors():
    @tf.function
    def order(seed):
        dataset = tf.data.Dataset.range(6).shuffle(6, seed=seed)
        return dataset.reduce(tf.constant(0, tf.int64), lambda total, x: 10 * total + x)

    one, two = int(order(tf.constant(1, tf.int64))), int(order(tf.constant(2, tf.int64)))
    assert sorted(f"{one:06}") == sorted(f"{two:06}") == list("012345")
    assert one != two


def test_options_of_zipped_datasets_are_merged_and_frozen():
    first, second = tf.data.Options(), tf.data.Options()
    first.autotune.enabled, second.experimental_deterministic = True, False
    zipped = tf.data.Dataset.zip(
        (tf.data.Dataset.range(1).with_options(first), tf.data.Dataset.range(1).with_options(second))
    )
    found = zipped.options()
    assert found.autotune.enabled
    assert found.deterministic is False
    with pytest.raises(ValueError, match="has no effect"):
        found.deterministic = True


def test_a_generator_goes_on_after_an_element_that_does_not_fit():
    def generator():
        yield [1, 2, 3]
        yield "text"
        yield [4, 5, 6]

    iterator = iter(tf.data.Dataset.from_generator(generator, output_types=tf.int64, output_shapes=[3]))
    assert next(iterator).numpy().tolist() == [1, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iterator)
    np.testing.assert_array_equal(next(iterator), [4, 5, 6])


def test_an_empty_repetition_of_a_shuffle_is_passed_over():
    sizes = iter([1, 0, 2])

    def generator():
        yield from range(next(sizes))

    dataset = tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec([], tf.int64))
    assert sorted(dataset.shuffle(10).repeat().take(3).as_numpy_iterator()) == [0, 0, 1]


def test_the_state_of_another_dataset_is_refused(tmp_path):
    path = tf.train.Checkpoint(iterator=iter(tf.data.Dataset.range(10).batch(2))).save(str(tmp_path / "c"))
    for other in (tf.data.Dataset.range(10), tf.data.Dataset.from_tensor_slices([1, 2]).batch(2)):
        with pytest.raises(tf.errors.NotFoundError, match="dataset definition has not changed"):
            tf.train.Checkpoint(iterator=iter(other)).restore(path)
    tf.train.Checkpoint(iterator=iter(tf.data.Dataset.range(12).batch(3))).restore(path).assert_consumed()
