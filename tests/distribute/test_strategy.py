"""`tf.distribute` with one replica: what TensorFlow's default strategy gives."""

import importlib
import io
import json
import subprocess
import sys

import pytest

import tapeflow as tf
from tapeflow._src.distribute import collectives, launcher
from tapeflow._src.distribute.communicator import started_processes
from tapeflow._src.distribute.several_machines import _memory_of
from tests.distribute import launch


def test_default_strategy():
    strategy = tf.distribute.get_strategy()
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    assert strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda a, b=1: (a, b), args=(2,), kwargs={"b": 5}) == (2, 5)
    assert strategy.experimental_local_results(3) == (3,)
    assert float(strategy.reduce("SUM", tf.constant([1.0, 2.0]), axis=0)) == 3.0
    assert float(strategy.reduce("mean", tf.constant([1, 2]), axis=0)) == 1.5
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, [1.0, 2.0], axis=None) == [1.0, 2.0]
    with strategy.scope() as entered:
        assert entered is strategy and not tf.distribute.has_strategy()
        assert tf.distribute.get_replica_context() is not None
    with pytest.raises(RuntimeError, match="unsupported by default"):
        _ = strategy.extended.worker_devices


def test_run_of_the_default_strategy():
    strategy = tf.distribute.get_strategy()
    replica = tf.distribute.get_replica_context

    def merge(strategy, x):
        return tf.distribute.in_cross_replica_context(), strategy.reduce("SUM", x, axis=None)

    assert strategy.run(lambda: replica().merge_call(merge, args=(2.0,))) == (True, 2.0)

    def enter():
        with strategy.scope() as entered:
            return entered is strategy

    assert strategy.run(enter)
    with pytest.raises(RuntimeError, match="requires being in cross-replica context"):
        strategy.run(lambda: strategy.reduce("SUM", 1.0, axis=None))
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        strategy.run(lambda x: x, args=3)
    with pytest.raises(ValueError, match="'MAX' is not a valid ReduceOp"):
        strategy.reduce("MAX", 1.0, axis=None)

    def step(x):
        if x > 0.0:  # converted by autograph
            x = -x
        return x

    assert float(tf.function(lambda x: strategy.run(step, args=(x,)))(tf.constant(2.0))) == -2.0


def test_replica_context():
    context = tf.distribute.get_replica_context()
    assert context.strategy is tf.distribute.get_strategy()
    assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (1, 0)
    x = tf.constant(3.0)
    assert context.all_reduce("SUM", x) is x
    assert context.merge_call(lambda strategy, a: (strategy is context.strategy, a), args=(3,)) == (True, 3)


def test_update():
    v = tf.Variable(1.0)
    extended = tf.distribute.get_strategy().extended
    assert float(extended.update(v, lambda v, x: v.assign_add(x), args=(2.0,))) == 3.0
    (result,) = extended.update(v, lambda v: v.assign(5.0), group=False)
    assert float(result) == 5.0


def test_chosen_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        assert tf.distribute.has_strategy() and tf.distribute.get_strategy() is strategy
        assert tf.distribute.get_replica_context() is None and tf.distribute.in_cross_replica_context()
        inside = strategy.run(
            lambda: (tf.distribute.get_replica_context().strategy, tf.distribute.in_cross_replica_context())
        )
        assert inside == (strategy, False)
    assert not tf.distribute.has_strategy()


def test_values_of_one_replica_are_distributed():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    made = strategy.experimental_distribute_values_from_function(lambda context: {"x": tf.ones([2])})
    assert made["x"].values[0].shape == [2]
    assert strategy.run(lambda value: value["x"] + 1.0, args=(made,)).numpy().tolist() == [2.0, 2.0]


def test_devices_that_are_not_there():
    with pytest.raises(ValueError, match="Unknown attribute 'fpga'"):
        tf.distribute.OneDeviceStrategy("/fpga:0")
    cards = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])  # placed softly, on processors
    assert [device[-5:] for device in cards.extended.worker_devices] == ["GPU:0", "GPU:1"]
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(ValueError, match="/device:GPU:0 do not exist; there are 1 logical processors"):
            tf.distribute.OneDeviceStrategy("/gpu:0")
        with pytest.raises(ValueError, match="/device:CPU:7 do not exist"):
            tf.distribute.MirroredStrategy(["cpu:0", "cpu:7"])
    finally:
        tf.config.set_soft_device_placement(True)
    for devices in (["/cpu:1"], ["CPU:7", "cpu:1"], ["/job:localhost/replica:0/task:0/device:CPU:1"]):
        strategy = tf.distribute.MirroredStrategy(devices)
        assert strategy.num_replicas_in_sync == len(devices)
        assert [device[-5:] for device in strategy.extended.worker_devices] == [name[-5:].upper() for name in devices]
        assert float(strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None)) == 2.0 * len(devices)
    assert tf.distribute.MirroredStrategy([]).num_replicas_in_sync == 1
    with pytest.raises(AssertionError, match="No duplicates allowed"):
        tf.distribute.MirroredStrategy(["cpu:0", "/device:CPU:0"])
    for kind in (tf.distribute.TPUStrategy, tf.distribute.ParameterServerStrategy):
        with pytest.raises(NotImplementedError, match=f"{kind.__name__}: it needs"):
            kind()


def test_programs_that_look_for_a_tpu_find_none():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    for look in (resolver, lambda: resolver(tpu=""), resolver.connect, lambda: resolver.connect(tpu="local")):
        with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
            look()


def test_workers_of_other_terminals_are_refused(monkeypatch):
    cluster = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", cluster)
    with pytest.raises(RuntimeError, match="tapeflow run --workers 2"):
        tf.distribute.MultiWorkerMirroredStrategy()
    assert tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec().num_tasks("worker") == 2
    monkeypatch.delenv("TF_CONFIG")
    assert tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync == 1


# ---- several replicas in one process


@pytest.fixture
def pair():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def replica():
    return tf.distribute.get_replica_context()


MODES = pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])


@MODES
def test_replicas_merge_their_values(pair, wrap):
    @wrap
    def both():
        def step():
            number = tf.cast(replica().replica_id_in_sync_group, tf.float32)
            total = replica().all_reduce("SUM", {"a": number + 1.0, "b": [number]})
            mean = replica().all_reduce(tf.distribute.ReduceOp.MEAN, number)
            gathered = replica().all_gather(tf.fill([1, 2], number), axis=0)
            merged = replica().merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(number,))
            return total, mean, gathered, merged

        return pair.run(step)

    total, mean, gathered, merged = both()
    for place in (0, 1):
        assert float(total["a"].values[place]) == 3.0 and float(total["b"][0].values[place]) == 1.0
        assert float(mean.values[place]) == 0.5 and float(merged) == 1.0  # one object for all
        assert gathered.values[place].numpy().tolist() == [[0.0, 0.0], [1.0, 1.0]]


@MODES
def test_gradients_through_all_reduce(pair, wrap):
    with pair.scope():
        v = tf.Variable(3.0)

    @wrap
    def both(x):
        def step(x):
            with tf.GradientTape() as tape:
                total = replica().all_reduce("SUM", v * x)
                loss = total * total
            return tape.gradient(loss, v)

        return pair.run(step, args=(x,))

    x = pair.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group + 1.0)
    )
    first, second = both(x).values
    # total = 9; the cotangent 2 * 9 comes from both replicas, so it is 36; times x.
    assert (float(first), float(second)) == (36.0, 72.0)


@MODES
def test_variables_of_replicas(pair, wrap):
    with pair.scope():
        mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        alike = tf.Variable(1.0)
        counted = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )
    assert isinstance(counted, tf.Variable) and not counted.trainable

    @wrap
    def both():
        def step():
            number = tf.cast(replica().replica_id_in_sync_group + 1, tf.float32)
            for variable in (mean, total, first, counted):
                variable.assign_add(number)
            before = alike * 1.0
            alike.assign(before + 1.0)  # without an aggregation: each replica read the value before
            return counted + 0.0, before

        return pair.run(step)

    own, before = both()
    assert [float(v) for v in own.values] == [1.0, 2.0] and [float(v) for v in before.values] == [1.0, 1.0]
    assert [float(v.numpy()) for v in (mean, total, first, alike, counted)] == [1.5, 3.0, 1.0, 2.0, 3.0]
    counted.assign(8.0)
    assert float(counted.numpy()) == 8.0 and [float(c) for c in counted.values] == [4.0, 4.0]
    pair.extended.update(mean, lambda v, x: v.assign(x), args=(7.0,))
    assert float(mean) == 7.0


def test_a_failing_replica_ends_the_others(pair):
    reached = []

    def step():
        if replica().replica_id_in_sync_group == 1:
            raise ValueError("the second replica fails")
        replica().all_reduce("SUM", tf.constant(1.0))
        reached.append(1)

    with pytest.raises(ValueError, match="the second replica fails"):
        pair.run(step)
    assert not reached
    with pytest.raises(RuntimeError, match="equally often"):
        pair.run(lambda: replica().replica_id_in_sync_group or replica().all_reduce("SUM", tf.constant(1.0)))
    assert [int(x) for x in pair.run(lambda: replica().replica_id_in_sync_group).values] == [0, 1]


def test_batches_are_split_among_replicas(pair):
    dataset = tf.data.Dataset.from_tensor_slices({"x": tf.range(7), "y": tf.ones([7, 2])}).batch(5)
    distributed = pair.experimental_distribute_dataset(dataset)
    assert isinstance(distributed, tf.distribute.DistributedDataset)
    batches = [[part.numpy().tolist() for part in batch["x"].values] for batch in distributed]
    assert batches == [[[0, 1, 2], [3, 4]], [[5], [6]]]

    @tf.function
    def total(batches):
        result = 0
        for batch in batches:
            result += pair.reduce("SUM", pair.run(lambda b: tf.reduce_sum(b["x"]), args=(batch,)), axis=None)
        return result

    assert int(total(distributed)) == 21
    rows = pair.reduce("MEAN", next(iter(distributed))["y"], axis=0)
    assert rows.numpy().tolist() == [1.0, 1.0]
    made = pair.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(4).batch(context.get_per_replica_batch_size(2))
    )
    assert [[part.numpy().tolist() for part in batch.values] for batch in made] == [[[0], [1]], [[2], [3]]]


def test_logical_processors_have_replicas(monkeypatch):
    config = importlib.import_module("tapeflow._src.config")
    monkeypatch.setattr(config, "_settings", config._Settings())
    config.reset_settings()
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 3)
    assert [device.name for device in tf.config.list_logical_devices()] == [f"/device:CPU:{n}" for n in range(3)]
    strategy = tf.distribute.MirroredStrategy()
    assert strategy.num_replicas_in_sync == 3 and len(strategy.extended.worker_devices) == 3
    tf.config.set_soft_device_placement(False)
    with tf.device("CPU:2"):
        assert float(tf.constant(1.0)) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not satisfy"), tf.device("CPU:3"):
        pass


def test_hosts_of_slurm():
    from tapeflow._src.distribute.cluster import expand_hosts

    assert expand_hosts("n[1-3,07],m2") == ["n1", "n2", "n3", "n07", "m2"]


def test_the_processes_of_mpi_have_the_names_of_tf_config(monkeypatch):
    from tapeflow._src.distribute.cluster import MpiClusterResolver

    class Second:
        rank, size = 1, 2

    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    resolver = MpiClusterResolver(Second())
    assert (resolver.task_type, resolver.task_id) == ("worker", 0)
    assert resolver.cluster_spec().as_dict() == cluster
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:1", "c:1"]}}))
    resolver = MpiClusterResolver(Second())
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.cluster_spec().as_dict() == {"worker": ["rank-0", "rank-1"]}


class Doubling:
    """A group of two processes with equal values."""

    rank, size = 0, 2

    def __init__(self, last_at_once=False):
        self.log, self.last_at_once = [], last_at_once

    def all_reduce(self, tensors, name, bfloat16):
        return self.finish_all_reduce(self.start_all_reduce(tensors, name, bfloat16))

    def start_all_reduce(self, tensors, name, bfloat16):
        self.log.append(("start", tuple(tuple(tensor.shape) for tensor in tensors)))
        return tensors

    def finish_all_reduce(self, started):
        self.log.append(("finish", tuple(tuple(tensor.shape) for tensor in started)))
        return [tensor + tensor for tensor in started]


def test_the_last_message_travels_at_once_where_that_is_faster():
    group = Doubling(last_at_once=True)

    @tf.function
    def f(x, y):
        return collectives.all_reduce(group, [x, y], bytes_per_pack=4)

    assert [float(total) for total in f(1.0, 2.0)] == [2.0, 4.0]
    assert [event for event, _ in group.log] == ["start", "start", "finish", "finish"]
    assert [float(total) for total in tf.function(lambda x: collectives.all_reduce(group, [x]))(3.0)] == [6.0]


def test_packed_tensors_are_added_in_their_own_memory():
    packed = tf.concat([tf.ones([5000]), tf.ones([3])], 0)
    array, shared = _memory_of(packed)
    assert shared
    array[0] = 7.0
    assert packed.numpy()[0] == 7.0


def test_messages_start_while_the_backward_pass_goes_on():
    group = Doubling()
    w1, w2 = tf.Variable(tf.ones([4, 4])), tf.Variable(tf.ones([4, 2]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(x @ w1) @ w2)
        return collectives.all_reduce(group, tape.gradient(y, [w1, w2]), bytes_per_pack=32)

    x = tf.ones([3, 4])
    sums = step(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(x @ w1) @ w2)
    for total, gradient in zip(sums, tape.gradient(y, [w1, w2])):
        assert total.numpy().tolist() == (2 * gradient).numpy().tolist()
    # The gradient of the last layer is there first.
    assert group.log == [(what, ((a, b),)) for what in ("start", "finish") for a, b in ((4, 2), (4, 4))]
    graph = step.get_concrete_function(x).graph
    names = [graph.node(number)[0] for number in range(graph.node_count)]
    first, second, _ = [number for number, name in enumerate(names) if name == "EagerPyFunc"]
    assert "MatMul" in names[first:second]


def test_strings_are_gathered_and_not_added():
    group = Doubling()
    group.all_gather = lambda array, name: [array, array]
    words = tf.constant([["a", ""], ["b\0c", "d"]])
    assert collectives.all_gather(group, words).numpy().tolist() == 2 * words.numpy().tolist()
    assert collectives.broadcast(group, words).numpy().tolist() == words.numpy().tolist()
    message = "all_reduce: values of several replicas must be numbers or bools; got dtype string"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        collectives.all_reduce(group, [words])
    with pytest.raises(TypeError, match=message):
        tf.function(lambda: collectives.all_reduce(group, [words]))()


def test_messages_of_one_tensor_and_of_none():
    group = Doubling()
    for value in (tf.constant(3.0), tf.zeros([0, 2]), tf.constant([1, 2], tf.int64), tf.ones([5], tf.bfloat16)):
        (total,) = collectives.all_reduce(group, [value])
        assert total.dtype == value.dtype and total.shape == value.shape
        assert tf.reduce_all(total == value + value)


def test_output_of_a_worker_is_written_line_by_line():
    class Pieces(io.StringIO):
        def write(self, text):
            pieces.append(text)
            return super().write(text)

    pieces: list[str] = []
    stream = launcher._Prefixed(Pieces(), 3)
    print("a", "b", file=stream)
    print("c\nd", file=stream)
    assert pieces == ["[3] a b\n", "[3] c\n", "[3] d\n"]
    print("begun", end="", file=stream, flush=True)
    print(" and ended\rnext", file=stream)
    assert pieces[3:] == ["[3] begun", " and ended\r", "[3] next\n"]


def test_a_batch_script_is_no_worker(monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert started_processes() == 1
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    assert started_processes() == 4


def test_the_cores_of_a_process(monkeypatch):
    monkeypatch.setattr(launcher.os, "sched_getaffinity", lambda _: range(12))
    for variable in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        monkeypatch.delenv(variable, raising=False)
    assert launcher._own_cores(8) == 1
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3),3")
    monkeypatch.setenv("SLURM_NODEID", "3")
    assert launcher._own_cores(9) == 4
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "6")
    assert launcher._own_cores(9) == 6
    monkeypatch.delenv("SLURM_CPUS_PER_TASK")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    assert launcher._own_cores(8) == 6


@launch.needs_mpi
def test_processes_that_do_not_find_each_other_are_refused():
    program = "import tapeflow as tf; tf.distribute.MultiWorkerMirroredStrategy()"
    environment = launch.environment(SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="0")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "was started as 2 processes, but each of them is alone" in done.stderr


def test_union_of_resolvers():
    resolvers = tf.distribute.cluster_resolver

    def resolver(tasks, **settings):
        return resolvers.SimpleClusterResolver(tf.train.ClusterSpec(tasks), **settings)

    first = resolver({"worker": ["a:1"]}, master="m", task_type="worker", task_id=0, rpc_layer="grpc")
    union = resolvers.UnionResolver(first, resolver({"worker": ["b:1"], "ps": {3: "c:1"}}))
    assert union.cluster_spec().as_dict() == {"worker": ["a:1", "b:1"], "ps": {3: "c:1"}}
    assert (union.task_type, union.task_id, union.rpc_layer) == ("worker", 0, "grpc")
    assert union.master() == "grpc://m" and union.master("worker", 1) == "grpc://b:1"
    assert union.cluster_spec().jobs == ["worker", "ps"]
    with pytest.raises(KeyError, match="Duplicate keys detected"):
        resolvers.UnionResolver(first, resolver({"worker": {0: "b:1", 2: "c:1"}})).cluster_spec()
    with pytest.raises(ValueError, match="At least one ClusterResolver"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="sub-class of `ClusterResolver`"):
        resolvers.UnionResolver(3)
    with pytest.raises(TypeError, match="The tasks for job 'a' must be a list or a dictionary"):
        tf.train.ClusterSpec({"a": 3})


def test_clusters_as_messages():
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": {2: "c:1"}})
    message = spec.as_cluster_def()
    assert [job.name for job in message.job] == ["ps", "worker"]
    assert dict(message.job[0].tasks) == {2: "c:1"}
    assert tf.train.ClusterSpec(message) == spec
    assert spec.as_dict() == {"worker": ["a:1", "b:1"], "ps": {2: "c:1"}}


def test_settings_of_sessions_are_left_alone():
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    strategy = tf.distribute.get_strategy()
    strategy.configure(config)
    changed = strategy.update_config_proto(config)
    assert changed == config and changed is not config


def test_central_storage_is_no_mirrored_strategy():
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0"])
    assert not isinstance(strategy, tf.distribute.MirroredStrategy)
    with strategy.scope():
        v = tf.Variable(1.0)
    strategy.run(lambda: v.assign_add(2.0))
    assert v.numpy() == 3.0
