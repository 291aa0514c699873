"""Several replicas in one process: devices, copies of variables, traced functions, branches, derivatives, input."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture
def pair():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def replica():
    return tf.distribute.get_replica_context()


def number():
    return tf.cast(replica().replica_id_in_sync_group, tf.float32)


def parts(value):
    return [np.asarray(part).tolist() for part in value.values]


@pytest.fixture
def processors():
    """Two logical processors."""
    from tapeflow._src import config

    config.reset_settings()
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
    yield
    config.reset_settings()


FIRST, SECOND = (f"/job:localhost/replica:0/task:0/device:CPU:{n}" for n in range(2))


def test_tensors_name_their_device(processors, pair):
    with tf.device("CPU:1"):
        x, v = tf.constant([1.0]), tf.Variable(2.0)
        assert (x.device, (x + 1).device, v.device) == (SECOND,) * 3
        with tf.device("/cpu:0"):
            assert (x + 1).device == FIRST
        with tf.device(None):
            assert (x + 1).device == FIRST
    assert (x + 1).device == FIRST

    @tf.function
    def f(x):
        named = [x.device]
        with tf.device("CPU:1"):
            named.append((x + 1).device)
        assert named == ["", "/device:CPU:1"]
        return x + 1

    assert f(x).device == FIRST
    assert pair.run(lambda: (tf.constant(1.0) + 1).device).values == (FIRST, SECOND)
    one = tf.distribute.OneDeviceStrategy("CPU:1")
    with one.scope():
        assert tf.Variable(1.0).device == SECOND == one.run(lambda: tf.constant(1.0)).device
        assert tf.constant(1.0).device == FIRST


@pytest.mark.parametrize(
    "names",
    [["/cpu:0", "/cpu:1"], ["CPU:0", "cpu:1"], ["/device:CPU:0", "/job:localhost/device:CPU:1"], [FIRST, SECOND]],
)
def test_devices_of_a_strategy_are_named_in_any_form(processors, names):
    strategy = tf.distribute.MirroredStrategy(names)
    assert strategy.extended.worker_devices == (FIRST, SECOND)
    for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4)):
        assert [part.device for part in batch.values] == [FIRST, SECOND]


def test_devices_that_do_not_exist(processors):
    absent = tf.distribute.MirroredStrategy(["CPU:5", "GPU:0"])
    assert [name[-6:] for name in absent.extended.worker_devices] == [":CPU:5", ":GPU:0"]
    assert [part.device for part in absent.run(lambda: tf.constant(1.0) + number()).values] == [FIRST, FIRST]
    for names, error in [
        (["foo"], ValueError),
        (["/job:localhost"], ValueError),
        (["CPU:1", "/cpu:1"], AssertionError),
        (["/job:worker/task:0/cpu:0"], tf.errors.InvalidArgumentError),
    ]:
        with pytest.raises(error):
            tf.distribute.MirroredStrategy(names)


def test_variables_that_replicas_make_are_shared(pair):
    def make():
        return tf.Variable(number() + 3.0, name="v_1"), tf.Variable(5.0, name="w"), tf.Variable(number(), name="v")

    for variable, value in zip(pair.run(make), (3.0, 5.0, 0.0)):  # the first replica's initial values
        assert type(variable).__name__ == "MirroredVariable" and parts(variable) == [value] * 2

    def make_in_the_second():
        return tf.Variable(1.0) if replica().replica_id_in_sync_group == 1 else None

    with pytest.raises(RuntimeError, match="Tried to create variable None with mismatching name on device 1"):
        pair.run(make_in_the_second)


def test_generators_that_replicas_split_have_streams_of_their_own(pair):
    with pair.scope():
        generator = tf.random.Generator.from_seed(7)
    (drawn,) = pair.run(lambda: [new.normal([2]) for new in generator.split(1)])
    # The values of TensorFlow 2.21.
    np.testing.assert_allclose(parts(drawn), [[-1.2735, -1.3036], [0.169, 0.758]], atol=1e-4)


def test_values_of_a_strategy_know_their_devices(processors, pair):
    with pair.scope():
        v = tf.Variable(1.0)
        read = tf.Variable(
            1.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )
    assert v._devices == read._devices == pair.run(lambda: tf.constant(1.0) + number())._devices == (FIRST, SECOND)


def test_functions_of_datasets_give_datasets(pair):
    per_replica = tf.distribute.InputOptions(
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA
    )
    for options in (None, per_replica):
        with pytest.raises(TypeError, match=r"distribute_datasets_from_function: .* must be a tf.data.Dataset; got 3"):
            pair.distribute_datasets_from_function(lambda context: 3, options)


def test_a_traced_function_runs_in_each_replica(pair):
    @tf.function
    def step():
        if replica().replica_id_in_sync_group == 0:
            return replica().all_reduce("SUM", number() + 1.0), tf.constant(5.0)
        return replica().all_reduce("SUM", number() + 1.0), tf.constant(7.0)

    for _ in range(2):
        total, own = pair.run(step)
        assert parts(total) == [3.0, 3.0] and parts(own) == [5.0, 7.0]
    assert parts(tf.function(lambda: pair.run(step))()[1]) == [5.0, 7.0]
    assert parts(pair.run(lambda: step()[0])) == [3.0, 3.0]  # a function that a replica calls


def test_copies_of_a_variable(pair):
    with pair.scope():
        v = tf.Variable(1.0, name="w")
    assert isinstance(v, tf.distribute.DistributedValues) and isinstance(v, tf.Variable)
    assert [copy.name for copy in v.values] == ["w:0", "w/replica_1:0"]
    assert repr(v).startswith("MirroredVariable:{\n  0: <tf.Variable 'w:0'")
    assert v.synchronization == tf.VariableSynchronization.ON_WRITE

    def step():  # without an aggregation each replica has its own value
        v.assign(number() + 5.0)
        with tf.GradientTape() as tape:
            y = v * v
        return v.read_value(), tape.gradient(y, v)

    for run in (step, tf.function(step)):
        own, gradient = pair.run(run)
        assert parts(own) == [5.0, 6.0] == parts(v) and parts(gradient) == [10.0, 12.0]
        assert float(v) == 5.0
        v.assign(1.0)
        assert parts(v) == [1.0, 1.0]
    results = pair.extended.update(v, lambda v, x: v.assign_add(x), args=(pair.run(number),), group=False)
    assert len(results) == 2 and parts(v) == [1.0, 2.0]
    assert pair.extended.value_container(v.values[1]) is v
    assert pair.extended.variable_created_in_scope(v)
    assert not pair.extended.variable_created_in_scope(tf.Variable(1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_scattered_rows_are_merged(pair, wrap):
    aggregations = tf.VariableAggregation
    expected = {"NONE": [4.0, 5.0], "SUM": [6.0, 6.0], "MEAN": [4.5, 4.5], "ONLY_FIRST_REPLICA": [4.0, 4.0]}
    for name, rows in expected.items():
        with pair.scope():
            v = tf.Variable(tf.fill([3], 3.0), aggregation=aggregations[name])
        slices = tf.IndexedSlices(tf.constant([7.0]), tf.constant([0]))
        pair.run(wrap(lambda v=v: [v.scatter_add(tf.IndexedSlices([number() + 1.0], [2]))][:0]))
        assert parts(v) == [[3.0, 3.0, row] for row in rows]
        wrap(lambda v=v, s=slices: [v.scatter_mul(s)][:0])()  # outside of replicas, in all of them
        assert [part[0] for part in parts(v)] == [21.0, 21.0]
        if name in ("SUM", "MEAN"):
            with pytest.raises(NotImplementedError, match="scatter_max is only supported"):
                pair.run(lambda v=v, s=slices: v.scatter_max(s))
    with pair.scope():
        v = tf.Variable([1.0], synchronization=tf.VariableSynchronization.ON_READ)
    with pytest.raises(NotImplementedError, match="doesn't support `scatter_add`"):
        v.scatter_add(slices)


def test_a_loaded_function_reads_the_copy_of_its_replica(pair, tmp_path):
    module = tf.Module()
    module.w = tf.Variable(2.0)
    module.f = tf.function(lambda x: x * module.w, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, str(tmp_path))
    with pair.scope():
        loaded = tf.saved_model.load(str(tmp_path))

    def step():
        loaded.w.assign(number() + 1.0)
        with tf.GradientTape() as tape:
            y = loaded.f(tf.constant(3.0)) ** 2
        return y, tape.gradient(y, loaded.w)

    for run in (step, tf.function(step)):
        y, gradient = pair.run(run)
        assert parts(y) == [9.0, 36.0] and parts(gradient) == [18.0, 36.0]


def test_variables_of_replicas_are_saved_with_how_they_are_merged(pair, tmp_path):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(
                0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
            )

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return self.count.assign_add(x)  # traced for the file, outside of replicas

    with pair.scope():
        counter = Counter()
    tf.saved_model.save(counter, str(tmp_path))
    assert float(tf.saved_model.load(str(tmp_path))(3.0)) == 3.0
    with pair.scope():
        loaded = tf.saved_model.load(str(tmp_path))
    pair.run(lambda: loaded(number() + 1.0))
    assert parts(loaded.count) == [1.0, 2.0] and float(loaded.count.read_value()) == 3.0


def test_what_only_replicas_have_called_is_saved(pair, tmp_path):
    with pair.scope():
        module = tf.Module()
        module.w = tf.Variable(2.0)

        @tf.function
        def scale(x):
            return x * module.w.assign(tf.abs(module.w) + 1.0)

        module.scale = scale
        pair.run(module.scale, args=(tf.constant([1.0, 2.0]),))
        tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.scale(tf.constant([1.0, 2.0])).numpy().tolist() == [4.0, 8.0] and float(loaded.w) == 4.0
    assert parts(module.w) == [3.0, 3.0]


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA", "NONE"])
def test_checkpoints_hold_merged_values(pair, tmp_path, aggregation):
    def make(strategy):
        with strategy.scope():
            return tf.Variable(
                0.0,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation[aggregation],
            )

    v = make(pair)
    pair.run(lambda: [v.assign(number() + 1.0)][:0])
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "c"))
    expected = {"SUM": 3.0, "MEAN": 1.5, "ONLY_FIRST_REPLICA": 1.0, "NONE": 1.0}[aggregation]
    assert tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE") == expected
    if aggregation != "NONE":
        for strategy in (pair, tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0"])):
            w = make(strategy)
            tf.train.Checkpoint(v=w).restore(path).assert_consumed()
            assert float(w.read_value()) == expected  # whatever the number of replicas is


def test_what_strategies_do_not_take(pair):
    with pytest.raises(ValueError, match=r"`NONE` variable synchronization mode .* for variable: v"), pair.scope():
        tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE, name="v")
    rows = pair.run(lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2])))
    with pytest.raises(TypeError, match=r"must be a tf\.data\.Dataset; got \[1, 2\]"):
        pair.experimental_distribute_dataset([1, 2])
    with pytest.raises(NotImplementedError, match="gather does not support IndexedSlices"):
        pair.gather(rows, axis=0)
    with pytest.raises(NotImplementedError, match="all_gather does not support IndexedSlices"):
        pair.run(lambda: replica().all_gather(tf.IndexedSlices(tf.ones([1]), tf.constant([0])), axis=0))
    with pytest.raises(RuntimeError, match=r"Strategy\.gather method requires cross-replica context, use get_replica"):
        pair.run(lambda: pair.gather(tf.ones([1]), axis=0))
    for size, error, text in (
        (2.5, TypeError, "must be an integer"),
        (-1, tf.errors.InvalidArgumentError, "must be non-negative"),
        ([1, 2], ValueError, "must be scalar"),
    ):
        with pytest.raises(error, match=f"global_batch_size {text}"):
            tf.nn.compute_average_loss([1.0], global_batch_size=size)


def test_a_central_storage_has_one_replica(processors):
    assert tf.distribute.experimental.CentralStorageStrategy().num_replicas_in_sync == 1
    assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 2


def test_variables_of_no_strategy_are_refused(pair):
    outside = tf.Variable(1.0, name="outside")
    for update in (pair.extended.update, lambda *args: pair.run(pair.extended.update, args)):
        with pytest.raises(AssertionError, match="'outside:0' was not created in the scope of the strategy"):
            update(outside, lambda v: v.assign_add(1.0))
    with pytest.raises(RuntimeError, match="Need to be inside"):
        pair.extended.colocate_vars_with(outside)
    with pair.scope(), pytest.raises(RuntimeError, match="Mixing different"):
        tf.distribute.MirroredStrategy(["CPU:0"]).extended.colocate_vars_with(outside)


def test_reductions_over_several_axes(pair):
    values = pair.run(lambda: tf.reshape(tf.range(6.0), [2, 3]) * (number() + 1.0))
    assert float(pair.reduce("MEAN", values, axis=(0, 1))) == 3.75
    assert float(pair.reduce("SUM", values, axis=(0, -1))) == 45.0
    for reduce in (lambda: pair.reduce("SUM", values, axis=(0, 2)), lambda: pair.gather(values, axis=2)):
        with pytest.raises(ValueError, match="out of range for `value` with rank 2"):
            reduce()


@pytest.mark.parametrize("traced", [False, True])
def test_values_merged_in_a_branch(pair, traced):
    with pair.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step(x):
        return tf.cond(
            tf.reduce_sum(x) > 0.0,
            lambda: total.assign_add(number() + 1.0) + replica().all_reduce("MEAN", number()),
            lambda: tf.constant(-1.0),
        )

    def run(x):
        return pair.run(step, args=(x,))

    run = tf.function(run) if traced else run
    assert parts(run(tf.constant([1.0]))) == [3.5, 3.5] and float(total) == 3.0
    assert parts(run(tf.constant([-1.0]))) == [-1.0, -1.0] and float(total) == 3.0


def test_values_merged_in_a_loop_are_refused(pair):
    @tf.function
    def run(n):
        def step():
            return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, replica().all_reduce("SUM", x)), [0, 1.0])

        return pair.run(step)

    with pytest.raises(RuntimeError, match="merge_call"):
        run(tf.constant(2))


@pytest.mark.parametrize("traced", [False, True])
def test_derivatives(pair, traced):
    def second_order():
        x = tf.constant(2.0) * (1.0 + number())
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = replica().all_reduce("SUM", x**3) ** 2
            first = tape.gradient(y, x)
        return first, outer.gradient(first, x)

    def through_gather():
        x = tf.fill([1 + replica().replica_id_in_sync_group, 2], 1.0 + number())
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = replica().all_gather(x, axis=0)
            y = tf.reduce_sum(rows * rows * tf.reshape(tf.range(6.0), [3, 2]))
        return tape.gradient(y, x)

    def run(step):
        return tf.function(lambda: pair.run(step))() if traced else pair.run(step)

    # y = T^2 with T = a^3 + b^3 in both replicas: its sum has the gradient 12 T x^2, and so on.
    first, second = run(second_order)
    assert parts(first) == [3456.0, 13824.0] and parts(second) == [6336.0, 18432.0]
    assert parts(run(through_gather)) == [[[0.0, 4.0]], [[16.0, 24.0], [32.0, 40.0]]]


def test_losses_are_scaled(pair):
    def step():
        return (
            tf.nn.compute_average_loss([1.0, 2.0, 3.0]),
            tf.nn.compute_average_loss([1.0, 2.0], global_batch_size=4),
            tf.nn.scale_regularization_loss([2.0, 4.0]),
        )

    assert [parts(x)[0] for x in pair.run(step)] == [1.0, 0.75, 3.0]
    assert [float(x) for x in step()] == [2.0, 0.75, 6.0]
    with pair.scope():
        for call in (tf.nn.compute_average_loss, tf.nn.scale_regularization_loss):
            with pytest.raises(RuntimeError, match="expected to be called in replica context"):
                call([1.0])


def test_values_of_replicas_as_tensors(pair):
    value = pair.experimental_distribute_values_from_function(lambda c: tf.constant(float(c.replica_id_in_sync_group)))
    assert parts(pair.run(lambda: tf.convert_to_tensor(value) + 1.0)) == [1.0, 2.0]
    with pytest.raises(ValueError, match="using a PerReplica object while not inside a replica context"):
        tf.convert_to_tensor(value)
    assert str(value).splitlines()[2] == "  1: tf.Tensor(1.0, shape=(), dtype=float32)"


def test_values_out_of_replicas(pair):
    x = pair.run(lambda: tf.reshape(tf.range(4.0), [2, 2]) * (number() + 1.0))
    assert pair.reduce("SUM", x, axis=1).numpy().tolist() == [3.0, 15.0]
    assert pair.reduce("MEAN", x, axis=-1).numpy().tolist() == [0.75, 3.75]
    assert pair.reduce("SUM", {"a": [x]}, axis=None)["a"][0].numpy().tolist() == [[0.0, 3.0], [6.0, 9.0]]
    assert float(pair.reduce("MEAN", pair.run(lambda: tf.constant([1, 2])), axis=0)) == 1.5
    for part, structure in zip(x.values, pair.experimental_local_results((x, {"a": x}))):
        assert structure[0] is part and structure[1]["a"] is part
    with pytest.raises(ValueError, match="non-DistributedValues value"):
        pair.reduce("SUM", tf.constant(1.0), axis=None)
    assert pair.gather(x, axis=1).shape == [2, 4]
    nothing, same = pair.run(lambda: (None, "a"))
    assert nothing is None and same == "a"


def test_scopes_do_not_mix(pair):
    other = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pair.scope(), pytest.raises(RuntimeError, match="Mixing different"), other.scope():
        pass
    with pytest.raises(RuntimeError, match="requires being in cross-replica context"):
        pair.run(lambda: pair.run(lambda: 1))


def test_random_streams_differ_between_replicas(pair):
    with pair.scope():
        generator = tf.random.Generator.from_seed(1)
    first, second = parts(pair.run(lambda: generator.normal([2])))
    np.testing.assert_allclose(first, [-0.8793044686317444, 1.468078851699829], rtol=1e-6)  # TensorFlow's numbers
    np.testing.assert_allclose(second, [0.020661573857069016, 1.9473345279693604], rtol=1e-6)
    generator.reset_from_seed(1)
    alone = tf.random.Generator.from_seed(1)
    np.testing.assert_array_equal(generator.normal([2]), alone.normal([2]))  # outside of replicas
    with pair.scope():
        np.testing.assert_array_equal(generator.normal([2]), alone.normal([2]))


def test_batches_of_a_fixed_size(pair):
    made = pair.distribute_datasets_from_function(lambda context: tf.data.Dataset.from_tensors([1.0]).repeat(3))
    assert [parts(batch) for batch in made] == [[[1.0], [1.0]]]  # as in TensorFlow, no step with an empty batch
    assert made.element_spec._value_specs[0].shape == [1]


def test_batches_of_functions(pair):
    made = pair.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(10).batch(4))
    assert [parts(batch) for batch in made] == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9], []]]
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    options = tf.distribute.InputOptions(experimental_replication_mode=mode, experimental_fetch_to_device=False)
    made = pair.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(10 * context.input_pipeline_id, 10 * context.input_pipeline_id + 2).batch(
            2
        ),
        options,
    )
    assert [parts(batch) for batch in made] == [[[0, 1], [10, 11]]]


def test_batches_of_ragged_and_sparse_rows(pair):
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4, 5, 6], [7]])).batch(4)
    (batch,) = pair.experimental_distribute_dataset(ragged)
    assert [part.to_list() for part in batch.values] == [[[1], [2, 3]], [[4, 5, 6], [7]]]
    sparse = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2], [3, 0]])).batch(3)
    (batch,) = pair.experimental_distribute_dataset(sparse)
    assert [tf.sparse.to_dense(part).numpy().tolist() for part in batch.values] == [[[1, 0], [0, 2]], [[3, 0]]]
    with pytest.raises(ValueError, match="must be batched"):
        pair.experimental_distribute_dataset(tf.data.Dataset.range(4))
    distributed = pair.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    assert isinstance(iter(distributed), tf.distribute.DistributedIterator) and distributed.cardinality == 2


@pytest.mark.parametrize(
    ("policy", "last"),
    [("OFF", [[8, 9], []]), ("FILE", [[8, 9], []]), ("DATA", [[8], [9]]), ("AUTO", [[8], [9]])],
)
def test_the_last_batch(pair, policy, last):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    dataset = tf.data.Dataset.range(10).batch(4).map(lambda x: x).prefetch(1).with_options(options)
    made = pair.experimental_distribute_dataset(dataset)
    assert [parts(batch) for batch in made] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], last]  # as in TensorFlow


def test_sizes_for_workers():
    from tapeflow._src.distribute.shards import sizes_for_worker

    assert [sizes_for_worker(7, 2, 2, rank) for rank in range(2)] == [[2, 2, 2, 1], [2, 1, 2, 2]]
    assert sizes_for_worker(1, 1, 2, 0) == [1, 0]


def test_files_are_sharded(tmp_path):
    from tapeflow._src.distribute.shards import shard_files

    names = []
    for name in "abc":
        path = str(tmp_path / name)
        with open(path, "w") as file:
            file.write(f"{name}1\n{name}2\n")
        names.append(path)
    files = tf.data.Dataset.from_tensor_slices(names)
    for dataset in (
        tf.data.TextLineDataset(names),
        tf.data.TextLineDataset(files),
        files.interleave(tf.data.TextLineDataset, cycle_length=1),
    ):
        pipe = shard_files(dataset.batch(2)._pipe, 2, 1, required=True)
        assert [batch.numpy().tolist() for batch in tf.data.Dataset(pipe)] == [[b"b1", b"b2"]]
        assert shard_files(dataset._pipe, 4, 0, required=False) is None
        zipped = tf.data.Dataset.zip((dataset, dataset.map(tf.strings.upper)))
        pairs = tf.data.Dataset(shard_files(zipped._pipe, 2, 1, required=True)).as_numpy_iterator()
        assert list(pairs) == [(b"b1", b"B1"), (b"b2", b"B2")]
        assert shard_files(tf.data.Dataset.zip((dataset, tf.data.Dataset.range(6)))._pipe, 2, 1, False) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"AutoShardPolicy\.FILE"):
        shard_files(tf.data.Dataset.range(3)._pipe, 2, 0, required=True)


def test_variables_of_tensorflow_1_have_copies(pair):
    """Keras 2 makes its variables by `tf.compat.v1.Variable`."""
    with pair.scope():
        v = tf.compat.v1.Variable([1.0], use_resource=True)
    assert isinstance(v, tf.distribute.DistributedValues) and pair.extended.variable_created_in_scope(v)

    def step():
        pair.extended.update(v, lambda v, delta: v.assign_add(delta), args=(tf.constant([2.0]),))
        return v.read_value()

    assert parts(pair.run(step)) == [[3.0], [3.0]]


@pytest.mark.parametrize(("aggregation", "total"), [("SUM", 6), ("ONLY_FIRST_REPLICA", 3)])
def test_numbers_take_the_dtype_of_the_variable(pair, aggregation, total):
    with pair.scope():
        counter = tf.Variable(0, dtype=tf.int64, aggregation=getattr(tf.VariableAggregation, aggregation))
    pair.run(lambda: counter.assign_add(3))
    assert [int(copy) for copy in counter.values] == [total, total]
    with pytest.raises((TypeError, ValueError), match="int64"):
        pair.run(lambda: counter.assign_add(tf.constant(1.5)))
    assert [int(copy) for copy in counter.values] == [total, total]


def test_a_wrapper_derived_from_the_class_hands_on_the_state(pair):
    """As Keras 2's variables do that cast themselves for mixed precision."""
    with pair.scope():
        v = tf.Variable([1.0])

    class Wrapper(type(v)):
        def __init__(self, variable):
            self._variable = variable

        def __getattr__(self, name):
            return getattr(self._variable, name)

    wrapper = Wrapper(v)
    assert pair.extended.variable_created_in_scope(wrapper)
    assert parts(wrapper) == [[1.0], [1.0]]


def test_variables_that_are_read_in_sync_are_trackable(pair):
    with pair.scope():
        v = tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ)
    assert v._object_identifier == tf.Variable(1.0)._object_identifier
    assert v._trackable_children() == {}


def test_which_dtypes_replicas_merge(pair):
    def merged(operation, *values):
        parts = pair.experimental_distribute_values_from_function(
            lambda c: tf.constant(values[c.replica_id_in_sync_group])
        )
        return pair.run(lambda part: replica().all_reduce(operation, part), args=(parts,))

    assert parts(merged("SUM", [False, True, False], [True, True, False])) == [[True, True, False]] * 2
    assert parts(merged("SUM", np.uint8(200), np.uint8(55))) == [255] * 2
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"all_reduce: .* must be numbers or bools; got dtype string"
    ):
        merged("SUM", "a", "b")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"all_reduce: .* numbers for a mean; got dtype bool"):
        merged("MEAN", True, False)
    with pytest.raises(TypeError, match="all_reduce: values of several replicas must be numbers or bools"):
        tf.function(lambda: merged("SUM", "a", "b"))()
    with pytest.raises(ValueError, match="all_gather: `axis` = 1 out of range for `value` with rank 1"):
        pair.run(lambda: replica().all_gather(tf.ones([2]), axis=1))


def test_forward_mode_through_collectives(pair):
    starts = pair.experimental_distribute_values_from_function(
        lambda c: tf.constant([c.replica_id_in_sync_group + 1.0])
    )

    def tangents(x):
        with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
            total = replica().all_reduce("SUM", x * x)
            rows = replica().all_gather(x * x, axis=0)
        return accumulator.jvp(total), accumulator.jvp(rows)

    for step in (tangents, tf.function(tangents)):
        total, rows = pair.run(step, args=(starts,))
        assert parts(total) == [[10.0]] * 2  # 2 x^2 of 1 and 2
        assert parts(rows) == [[2.0, 8.0]] * 2


def test_gradients_through_collectives_are_computed_in_replicas(pair):
    x = tf.constant([1.0, 2.0])

    def total(x):
        return pair.experimental_local_results(pair.run(lambda: replica().all_reduce("SUM", x * x)))[0]

    with tf.GradientTape() as tape, pytest.raises(RuntimeError, match="computed in the replica that called it"):
        tape.watch(x)
        tf.function(total)(x)
