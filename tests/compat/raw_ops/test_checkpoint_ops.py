"""Raw operations that save, restore and rearrange tensors of checkpoint files."""

import numpy as np
import pytest

import tapeflow as tf

raw = tf.raw_ops


def save(path, names, parts, tensors):
    raw.SaveV2(prefix=path, tensor_names=names, shape_and_slices=parts, tensors=tensors)


def restore(path, names, parts, dtypes):
    return raw.RestoreV2(prefix=path, tensor_names=names, shape_and_slices=parts, dtypes=dtypes)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model")


def test_tensors_are_saved_and_restored(path):
    save(path, ["x", "text"], ["", ""], [tf.range(6.0), tf.constant(["a", "b"])])
    x, text = restore(path, ["x", "text"], ["", ""], [tf.float32, tf.string])
    assert x.numpy().tolist() == [0, 1, 2, 3, 4, 5]
    assert text.numpy().tolist() == [b"a", b"b"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int32"):
        restore(path, ["x"], [""], [tf.int32])
    with pytest.raises(tf.errors.NotFoundError, match="Key y not found"):
        restore(path, ["y"], [""], [tf.int32])


def test_parts_of_tensors(path):
    values = tf.reshape(tf.range(12), [4, 3])
    save(path, ["w", "w"], ["4 3 0,1:-", "4 3 1,3:-"], [values[:1], values[1:]])
    assert tf.train.list_variables(path) == [("w", [4, 3])]
    (part,) = restore(path, ["w"], ["4 3 1,2:2,1"], [tf.int32])
    assert part.numpy().tolist() == [[5], [8]]
    for spec in ("4 3 1", "4 3 3,2:-"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape_and_slice"):
            restore(path, ["w"], [spec], [tf.int32])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not that of"):
        save(path, ["w"], ["4 3 0,2:-"], [values[:1]])


def test_restoring_in_a_function(path):
    save(path, ["w"], [""], [tf.ones([4, 3])])

    @tf.function
    def read():
        (part,) = restore(path, ["w"], ["4 3 0,2:-"], [tf.float32])
        assert part.shape == [2, 3]
        return part

    assert read().numpy().sum() == 6.0
    save(path, ["w"], [""], [tf.zeros([4, 3])])
    assert read().numpy().sum() == 0.0


def test_names_of_shards():
    assert raw.ShardedFilename(basename="foo", shard=4, num_shards=100).numpy() == b"foo-00004-of-00100"
    assert raw.ShardedFilespec(basename="foo", num_shards=100).numpy() == b"foo-?????-of-00100"


def remapped(path, rows, columns, new, shape):
    return raw.LoadAndRemapMatrix(
        ckpt_path=[path],
        old_tensor_name="w",
        row_remapping=rows,
        col_remapping=columns,
        initializing_values=new,
        num_rows=shape[0],
        num_cols=shape[1],
    ).numpy()


def test_matrices_are_rearranged(path):
    old = np.arange(12, dtype=np.float32).reshape(3, 4)
    save(path, ["w"], [""], [tf.constant(old)])
    np.testing.assert_array_equal(remapped(path, [2, 0], [], [], (2, 4)), old[[2, 0]])
    np.testing.assert_array_equal(
        remapped(path, [1, -1], [3, -1], [7.0, 8.0, 9.0], (2, 2)), [[old[1, 3], 7.0], [8.0, 9.0]]
    )
    with pytest.raises(tf.errors.UnimplementedError, match="more than once"):
        remapped(path, [1, 1], [], [], (2, 4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="4 values are missing; got 0"):
        remapped(path, [1, -1], [], [], (2, 4))


def test_words_of_another_vocabulary(tmp_path):
    for name, words in (("old", "a b c"), ("new", "x c a")):
        (tmp_path / name).write_text("\n".join(words.split()) + "\n")
    given = {"new_vocab_file": str(tmp_path / "new"), "old_vocab_file": str(tmp_path / "old")}
    numbers, present = raw.GenerateVocabRemapping(**given, new_vocab_offset=0, num_new_vocab=3)
    assert (numbers.numpy().tolist(), int(present)) == ([-1, 2, 0], 2)
    numbers, _ = raw.GenerateVocabRemapping(**given, new_vocab_offset=1, num_new_vocab=2, old_vocab_size=2)
    assert numbers.numpy().tolist() == [-1, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the vocabulary has 3"):
        raw.GenerateVocabRemapping(**given, new_vocab_offset=2, num_new_vocab=2)
