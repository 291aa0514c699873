"""Saved models: objects with their functions come back."""

import collections

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.function.spec_messages import decode
from tapeflow._src.io.protos import messages


class Adder(tf.Module):
    """A module with functions."""

    def __init__(self):
        super().__init__()
        self.total, self.parts = tf.Variable(1.0), [tf.Variable([1.0, 2.0], trainable=False)]
        self.same = self.total

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        return x * self.total + tf.reduce_sum(self.parts[0])

    @tf.function
    def add(self, x):
        self.total.assign_add(x)
        return {"total": self.total.read_value()}


def test_an_object_comes_back(tmp_path):
    adder = Adder()
    adder.add(tf.constant(4.0))
    tf.saved_model.save(adder, tmp_path / "m", signatures={"call": adder.__call__, "add": adder.add})
    assert tf.saved_model.contains_saved_model(tmp_path / "m")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded(tf.constant([1.0, 2.0])), [8.0, 13.0])
    assert float(loaded.add(tf.constant(1.0))["total"]) == 6.0
    assert loaded.same is loaded.total and len(loaded.variables) == 2 and len(loaded.trainable_variables) == 1
    assert adder.total == 5.0
    assert sorted(loaded.signatures) == ["add", "call"]
    np.testing.assert_array_equal(loaded.signatures["call"](tf.constant([1.0]))["output_0"], [9.0])
    with tf.GradientTape() as tape:
        y = loaded(tf.constant([3.0]))
    assert tape.gradient(y, loaded.total) == 3.0


def test_a_restored_object_can_be_saved(tmp_path):
    adder = Adder()
    path = tf.train.Checkpoint(adder=adder).save(tmp_path / "c")
    tf.train.Checkpoint(adder=adder).restore(path)
    tf.saved_model.save(adder, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    loaded.more = tf.Variable(1.0)
    assert loaded.total == 1.0


def test_the_variables_are_a_checkpoint(tmp_path):
    adder = Adder()
    tf.saved_model.save(adder, tmp_path, signatures=adder.__call__.get_concrete_function())
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "variables" / "variables"))]
    assert names[1:] == [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("parts/0", "total")]
    assert list(tf.saved_model.load(tmp_path).signatures) == ["serving_default"]


def test_what_cannot_be_saved_or_loaded(tmp_path):
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path)
    module = tf.Module()
    module.f = tf.function(lambda x: tf.py_function(lambda y: y, [x], tf.float32))
    module.f(1.0)
    with pytest.raises(tf.errors.UnimplementedError, match="runs Python when it is called"):
        tf.saved_model.save(module, tmp_path)
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load(tmp_path / "none")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(tf.errors.DataLossError, match="holds no graph"):
        tf.saved_model.load(tmp_path)


def saved_and_loaded(thing, folder, **kwargs):
    """What comes back of an object."""
    tf.saved_model.save(thing, folder, **kwargs)
    return tf.saved_model.load(folder)


def local_module():
    """A module whose class no other program can import: its functions are written as graphs."""

    class Local(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0, 2.0])
            self.steps = {"count": tf.Variable(0, trainable=False)}

        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def __call__(self, x):
            self.steps["count"].assign_add(1)
            return x * self.w

        @tf.function
        def repeat(self, x, times=2):
            total, rows = x, tf.TensorArray(tf.float32, size=times)
            for i in tf.range(times):
                total = total * self.w if total[0] < 10.0 else total - 1.0
                rows = rows.write(i, total[1])
            while tf.reduce_sum(total) > 3.0:
                total = total / 2.0
            return {
                "total": total,
                "rows": rows.stack(),
                "column": tf.reshape(total, [tf.size(total), 1]),
                "times": times,
            }

    return Local()


class TestGraphs:
    def test_functions_run_without_their_class(self, tmp_path):
        module = local_module()
        module.repeat(tf.constant([3.0, 4.0]))
        loaded = saved_and_loaded(module, tmp_path)
        assert not isinstance(loaded, tf.Module)
        np.testing.assert_array_equal(loaded(tf.constant([[1.0, 2.0]])), [[1.0, 4.0]])
        assert loaded.steps["count"] == 1 and module.steps["count"] == 0
        expected, found = module.repeat(tf.constant([3.0, 4.0])), loaded.repeat(tf.constant([3.0, 4.0]))
        assert expected.keys() == found.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value)

    def test_variables_are_those_of_the_functions(self, tmp_path):
        loaded = saved_and_loaded(local_module(), tmp_path)
        loaded.w.assign([5.0, 6.0])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded(tf.constant([[1.0, 2.0]])) ** 2)
        assert y == 169.0
        np.testing.assert_array_equal(tape.gradient(y, loaded.w), [10.0, 48.0])

    def test_other_arguments_are_refused(self, tmp_path):
        module = local_module()
        module.repeat(tf.constant([3.0, 4.0]))
        loaded = saved_and_loaded(module, tmp_path)
        with pytest.raises(ValueError, match="Could not find matching concrete function to call"):
            loaded.repeat(tf.constant([3, 4]))
        with pytest.raises(ValueError, match="Found zero restored functions"):
            saved_and_loaded(local_module(), tmp_path / "b").repeat(tf.constant([3.0, 4.0]))

    def test_signatures(self, tmp_path):
        module = tf.Module()
        module.v = tf.Variable(2.0)
        double = tf.function(lambda x: {"y": x * module.v}, input_signature=[tf.TensorSpec([None], name="x")])
        loaded = saved_and_loaded(module, tmp_path, signatures={"double": double})
        assert list(loaded.signatures) == ["double"]
        np.testing.assert_array_equal(loaded.signatures["double"](x=tf.constant([1.0, 3.0]))["y"], [2.0, 6.0])
        assert loaded.signatures["double"].structured_outputs["y"].shape.as_list() == [None]

    def test_what_was_loaded_can_be_saved_again(self, tmp_path):
        loaded = saved_and_loaded(saved_and_loaded(local_module(), tmp_path / "a"), tmp_path / "b")
        np.testing.assert_array_equal(loaded(tf.constant([[1.0, 2.0]])), [[1.0, 4.0]])


class Layers(tf.Module):
    """Tables, assets, effects, random numbers and gradients, as functions."""

    def __init__(self, path):
        super().__init__()
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)
        self.words = tf.lookup.StaticVocabularyTable(pairs, 3)
        self.changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
        self.changing.insert(tf.constant(["k"]), tf.constant([5.0]))
        self.asset = tf.saved_model.Asset(path)
        self.w = tf.Variable([[1.0, 2.0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, keys):
        return self.table.lookup(keys), self.words.lookup(keys), self.changing.lookup(keys), self.table.size()

    @tf.function(input_signature=[])
    def read(self):
        return tf.io.read_file(self.asset.asset_path)

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def draw(self, x):
        return tf.nn.dropout(x, 0.5) + 0.0 * tf.random.uniform([2])

    @tf.function(input_signature=[tf.TensorSpec([2, 2])])
    def gradient(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.gelu(x * self.w))
        return tape.gradient(y, x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def texts(self, x):
        parts = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(x), "[.!]", ""))
        return parts.to_tensor(), tf.strings.length(x), tf.strings.to_hash_bucket_fast(x, 5)


class TestResources:
    @pytest.fixture
    def both(self, tmp_path):
        path = tmp_path / "words.txt"
        path.write_text("some words")
        module = Layers(str(path))
        loaded = saved_and_loaded(module, tmp_path / "m")
        path.write_text("other words")
        return module, loaded

    def test_tables(self, both):
        module, loaded = both
        keys = tf.constant(["b", "k", "x"])
        for found, expected in zip(loaded.look(keys), module.look(keys)):
            np.testing.assert_array_equal(found, expected)

    def test_assets_are_copied(self, both):
        assert both[1].read() == b"some words"

    def test_assets_stand_for_their_paths(self, tmp_path):
        path = tmp_path / "words.txt"
        path.write_text("some\nwords\n")
        module = tf.Module()
        module.asset = tf.saved_model.Asset(str(path))
        line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(module.asset, tf.string, line, tf.int64, number)
        module.table = tf.lookup.StaticHashTable(words, -1)
        module.find = tf.function(
            lambda word: module.table.lookup(word), input_signature=[tf.TensorSpec([], tf.string)]
        )
        assert tf.io.read_file(module.asset) == b"some\nwords\n"
        assert saved_and_loaded(module, tmp_path / "m").find(tf.constant("words")) == 1

    def test_random_numbers_are_drawn_anew(self, both):
        x = tf.ones([50, 2])
        first, second = both[1].draw(x).numpy(), both[1].draw(x).numpy()
        assert set(np.unique(first)) <= {0.0, 2.0}
        assert (first != second).any()

    def test_gradients_inside_of_functions(self, both):
        module, loaded = both
        x = tf.constant([[0.3, -0.2], [1.0, 2.0]])
        np.testing.assert_allclose(loaded.gradient(x), module.gradient(x), rtol=1e-5)

    def test_texts(self, both):
        module, loaded = both
        x = tf.constant(["A word!", "another one. Or two"])
        for found, expected in zip(loaded.texts(x), module.texts(x)):
            np.testing.assert_array_equal(found, expected)


def test_a_model_of_version_0_1_is_refused(tmp_path):
    (tmp_path / "saved_model.pickle").write_bytes(b"anything")
    with pytest.raises(ValueError, match=r"written by Tapeflow 0\.1 as a pickle"):
        tf.saved_model.load(tmp_path)


def test_a_variable_that_no_attribute_leads_to_is_named(tmp_path):
    module, hidden = tf.Module(), tf.Variable(1.0, name="hidden")
    module.f = tf.function(lambda x: x * hidden, input_signature=[tf.TensorSpec([])])
    with pytest.raises(AssertionError, match=r"references an 'untracked' resource.*referencing this tensor = 'hidden"):
        tf.saved_model.save(module, tmp_path)


def test_captured_tensors_and_concrete_functions_are_kept(tmp_path):
    module, captured = tf.Module(), tf.constant([1.0, 2.0])
    module.f = tf.function(lambda x: x + captured)
    module.g = module.f.get_concrete_function(tf.TensorSpec([2]))
    loaded = saved_and_loaded(module, tmp_path)
    np.testing.assert_array_equal(loaded.g(tf.constant([1.0, 1.0])), [2.0, 3.0])
    np.testing.assert_array_equal(loaded.f(tf.constant([1.0, 1.0])), [2.0, 3.0])
    module.h = tf.function(lambda: None, input_signature=[])
    assert saved_and_loaded(module, tmp_path / "b").h() is None


def test_a_kill_while_saving_leaves_the_old_model(tmp_path, monkeypatch):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, tmp_path)
    module.v.assign(2.0)

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        tf.saved_model.save(module, tmp_path)
    monkeypatch.undo()
    assert tf.saved_model.load(tmp_path).v == 1.0
    assert not [path for path in tmp_path.rglob("*") if ".tmp" in path.name]


class TestCustomGradients:
    def saved(self, function, folder, **options):
        module = tf.Module()
        module.v = tf.Variable(3.0)
        module.f = tf.function(function(module), input_signature=[tf.TensorSpec([None])])
        tf.saved_model.save(module, folder, options=tf.saved_model.SaveOptions(**options))
        return tf.saved_model.load(folder)

    @staticmethod
    def clipped(module):
        @tf.custom_gradient
        def clip(x):
            return x * x, lambda dy: tf.clip_by_value(dy * 2 * x, -0.1, 0.1)

        return clip

    def test_the_rule_is_saved(self, tmp_path):
        loaded = self.saved(self.clipped, tmp_path / "model")
        x = tf.constant([0.01, -1.0, 2.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = loaded.f(x)
            dx = tape.gradient(y, x)
        np.testing.assert_allclose(y, [1e-4, 1.0, 4.0], rtol=1e-6)
        np.testing.assert_allclose(dx, [0.02, -0.1, 0.1], rtol=1e-6)
        np.testing.assert_allclose(outer.gradient(dx, x), [2.0, 0.0, 0.0], rtol=1e-6)
        again = tmp_path / "again"
        tf.saved_model.save(loaded, again)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.saved_model.load(again).f(x)
        np.testing.assert_allclose(tape.gradient(y, x), [0.02, -0.1, 0.1], rtol=1e-6)

    def test_gradients_of_variables_and_rules_in_loops(self, tmp_path):
        def scaled(module):
            @tf.custom_gradient
            def scale(x):
                def rule(dy, variables=None):
                    return dy * 10.0, [tf.reduce_sum(dy * 100.0) for _ in variables]

                return x * module.v, rule

            def repeated(x):
                for _ in tf.range(2):
                    x = scale(x)
                return x

            return repeated

        loaded = self.saved(scaled, tmp_path / "model")
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded.f(x)
        dx, dv = tape.gradient(y, [x, loaded.v])
        assert y.numpy().tolist() == [9.0, 18.0]
        assert dx.numpy().tolist() == [100.0, 100.0]
        assert float(dv) == 2 * 100.0 + 2 * 1000.0

    def test_without_its_rule_a_gradient_is_refused(self, tmp_path):
        module = tf.Module()
        module.f = tf.function(self.clipped(module), input_signature=[tf.TensorSpec([None])])
        tf.saved_model.save(module, tmp_path / "model")
        path = tmp_path / "model" / "saved_model.pb"
        message = messages.SavedModel.FromString(path.read_bytes())
        del message.meta_graphs[0].graph_def.library.registered_gradients[:]
        path.write_bytes(message.SerializeToString())
        loaded, x = tf.saved_model.load(tmp_path / "model"), tf.constant([1.0])
        assert loaded.f(x).numpy().tolist() == [1.0]
        with pytest.raises(LookupError, match="No gradient defined for operation"), tf.GradientTape() as tape:
            tape.watch(x)
            tape.gradient(loaded.f(x), x)


def test_the_signatures_of_a_loaded_model_are_saved_with_it_again(tmp_path):
    adder = Adder()
    tf.saved_model.save(adder, tmp_path / "a", signatures={"call": adder.__call__})
    first = tf.saved_model.load(tmp_path / "a")
    tf.saved_model.save(first, tmp_path / "b", signatures=first.signatures)
    again = tf.saved_model.load(tmp_path / "b")
    assert list(again.signatures) == ["call"]
    np.testing.assert_array_equal(again.signatures["call"](tf.constant([1.0]))["output_0"], [4.0])


def test_signatures_give_ragged_tensors(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def parted(x):
        return {"rows": tf.RaggedTensor.from_row_lengths(x, [1, 2]), "all": x}

    module = tf.Module()
    module.parted = parted
    tf.saved_model.save(module, tmp_path, signatures=parted)
    found = tf.saved_model.load(tmp_path).signatures["serving_default"](x=tf.constant([1.0, 2.0, 3.0]))
    assert found["rows"].to_list() == [[1.0], [2.0, 3.0]]
    np.testing.assert_array_equal(found["all"], [1.0, 2.0, 3.0])
    message = messages.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes())
    outputs = message.meta_graphs[0].signature_def["serving_default"].outputs
    assert len(outputs["rows"].composite_tensor.components) == 2


def test_traces_of_objects_that_no_file_can_name_are_left_out(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x, other: x + 1.0)
    module.f(tf.constant(1.0), object())
    module.f(tf.constant(1.0), 2)
    tf.saved_model.save(module, tmp_path)
    assert tf.saved_model.load(tmp_path).f(tf.constant(1.0), 2).numpy() == 2.0


def test_lists_become_tensors_of_a_loaded_function(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2], tf.bool)])
    tf.saved_model.save(module, tmp_path)
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).f([True, False]), [True, False])


def test_states_of_random_operations_are_no_variables(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda: tf.random.uniform([2]), input_signature=[])
    concrete = module.f.get_concrete_function()
    assert concrete.variables == concrete.trainable_variables == ()
    module.held = list(concrete.variables)
    tf.saved_model.save(module, tmp_path)


def test_a_function_without_results_is_no_signature(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    module.set = tf.function(lambda x: [module.v.assign(x)][:0], input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert len(loaded.signatures) == 0
    loaded.set(3.0)
    assert float(loaded.v) == 3.0


def test_concrete_functions_with_values_of_python_name_their_parameters(tmp_path):
    module = tf.Module()
    function = tf.function(lambda x, k=3: x + float(k))
    module.c = function.get_concrete_function(tf.TensorSpec([None]), 5)
    tf.saved_model.save(module, tmp_path)
    message = messages.SavedModel()
    message.ParseFromString((tmp_path / "saved_model.pb").read_bytes())
    nodes = message.meta_graphs[0].object_graph_def.nodes
    spec = next(node.bare_concrete_function for node in nodes if node.bare_concrete_function.argument_keywords)
    assert list(decode(spec.function_spec.fullargspec).args) == ["x", "k"]
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).c(tf.constant([1.0])), [6.0])


def test_the_default_signature_is_the_one_function_that_can_be_one(tmp_path):
    module = tf.Module()
    spec = [tf.TensorSpec([None])]
    module.nested = tf.function(lambda x: (x, (x, x)), input_signature=spec)
    tf.saved_model.save(module, tmp_path)
    assert list(tf.saved_model.load(tmp_path).signatures) == []
    module.c = tf.function(lambda x: x * 2.0).get_concrete_function(*spec)
    tf.saved_model.save(module, tmp_path)
    found = tf.saved_model.load(tmp_path).signatures["serving_default"](x=tf.constant([1.0]))
    np.testing.assert_array_equal(found["output_0"], [2.0])


def test_variables_that_saving_makes_are_saved(tmp_path):
    class Layer(tf.Module):
        w = None

        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.fill([x.shape[-1], 2], 3.0))
            return x @ self.w

    class Model(tf.Module):
        def __init__(self):
            self.layer = Layer()

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
        def __call__(self, x):
            return self.layer(x)

    tf.saved_model.save(Model(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded(tf.ones([1, 4])).numpy().tolist() == [[12.0, 12.0]] and loaded.layer.w.shape == [4, 2]


def test_a_trace_that_reads_an_iterator_stays_behind(tmp_path):
    module = tf.Module()
    module.total = tf.Variable(0.0)

    @tf.function
    def adapt(iterator):
        module.total.assign_add(tf.reduce_sum(next(iterator)))

    module.adapt = adapt
    module.scaled = tf.function(lambda x: x * module.total, input_signature=[tf.TensorSpec([], tf.float32)])
    module.adapt(iter(tf.data.Dataset.from_tensors(tf.constant([1.0, 2.0]))))
    tf.saved_model.save(module, str(tmp_path))
    assert tf.saved_model.load(str(tmp_path)).scaled(2.0).numpy() == 6.0


def test_containers_without_objects_come_back_empty(tmp_path):
    module = tf.Module()
    module.parts, module.by_name, module.words = [], {}, ["a", "b"]
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert (loaded.parts, loaded.by_name, loaded.words) == ([], {}, [])


def test_a_function_that_exports_a_table(tmp_path):
    module = tf.Module()
    module.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [-1.0, -2.0])
    module.table.insert(["q"], [[1.0, 2.0]])
    module.content = tf.function(module.table.export, input_signature=[])
    tf.saved_model.save(module, tmp_path)
    keys, values = tf.saved_model.load(tmp_path).content()
    assert keys.numpy().tolist() == [b"q"] and values.numpy().tolist() == [[1.0, 2.0]]


def test_calls_of_signatures_say_their_shapes(tmp_path):
    module = tf.Module()
    module.double = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, tmp_path, signatures=module.double)
    graph = messages.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes()).meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    calls = [node for node in nodes if node.op == "StatefulPartitionedCall"]
    shapes = [[d.size for d in call.attr["_output_shapes"].list.shape[0].dim] for call in calls]
    assert shapes == [[-1, 3], [-1, 3]]


def test_fields_of_a_named_tuple_name_the_results_of_a_signature(tmp_path):
    pair = collections.namedtuple("Pair", ["total", "mean"])
    module = tf.Module()
    module.f = tf.function(lambda x: pair(tf.reduce_sum(x), tf.reduce_mean(x)), input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, tmp_path)
    found = tf.saved_model.load(tmp_path).signatures["serving_default"](x=tf.constant([1.0, 3.0]))
    assert {name: float(value) for name, value in found.items()} == {"total": 4.0, "mean": 2.0}


def test_a_class_with_a_method_of_another_type(tmp_path):
    class Holder(tf.Module):
        __bool__ = tf.Tensor.__bool__

        @tf.function(input_signature=[tf.TensorSpec([])])
        def double(self, x):
            return 2.0 * x

    tf.saved_model.save(Holder(), tmp_path / "model")
    assert tf.saved_model.load(tmp_path / "model").double(tf.constant(3.0)) == 6.0


def test_concrete_functions_of_structures_have_one_parameter_for_each_argument(tmp_path):
    spec = tf.TensorSpec([2])
    model = tf.Module()
    model.listed = tf.function(lambda pair: pair[0] - pair[1]).get_concrete_function([spec, spec])
    model.named = tf.function(lambda given, scale: given["a"] * scale).get_concrete_function(
        {"a": spec, "b": spec}, spec
    )
    model.mixed = tf.function(lambda x, pair, flag: x + pair[0]).get_concrete_function(spec, (spec, spec), True)
    model.plain = tf.function(lambda x, y: x - y).get_concrete_function(spec, spec)
    tf.saved_model.save(model, tmp_path)
    objects = tf.__internal__.saved_model.parse_saved_model(tmp_path).meta_graphs[0].object_graph_def
    counts = {}
    for child in objects.nodes[0].children:
        saved = objects.nodes[child.node_id].bare_concrete_function
        if saved.concrete_function_name:
            values = {v.key: v.value for v in saved.function_spec.fullargspec.named_tuple_value.values}
            counts[child.local_name] = len(values["args"].list_value.values)
    assert counts == {"listed": 1, "named": 2, "mixed": 3, "plain": 2}
    x, y = tf.constant([1.0, 2.0]), tf.constant([5.0, 7.0])
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.listed([x, y]), [-4, -5])
    np.testing.assert_array_equal(loaded.named({"a": x, "b": y}, y), [5, 14])
    np.testing.assert_array_equal(loaded.mixed(x, (y, x)), [6, 9])


def test_the_releases_that_wrote_a_model(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.tensorflow_version == tf.version.VERSION
    assert loaded.tensorflow_git_version == tf.version.GIT_VERSION


@pytest.mark.parametrize("jit_compile", [None, True, False])
def test_whether_a_function_is_to_be_compiled(tmp_path, jit_compile):
    module = tf.Module()
    module.f = tf.function(lambda x: x + 1.0, [tf.TensorSpec([])], jit_compile=jit_compile)
    tf.saved_model.save(module, str(tmp_path))
    assert tf.saved_model.load(str(tmp_path)).f._jit_compile is jit_compile
