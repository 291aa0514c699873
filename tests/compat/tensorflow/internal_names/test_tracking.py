"""What objects of libraries hold, and how checkpoints see it."""

import importlib
import weakref

import pytest

import tapeflow as tf

tracking = tf.__internal__.tracking


def test_module_tracks_what_it_sets_and_nothing_else():
    class Model(tf.Module):
        @tracking.no_automatic_dependency_tracking
        def keep(self):
            self.aside = tf.Variable(1.0)

    model = Model()
    model.w = tf.Variable(1.0)
    model.keep()
    object.__setattr__(model, "hidden", tf.Variable(2.0))
    model.gone = tf.Variable(3.0)
    del model.gone
    children = tracking.ObjectGraphView(model).children(model)
    assert list(children) == ["w"]
    assert isinstance(model, tracking.AutoTrackable)
    assert len(model.variables) == 3  # of all attributes, saved or not


def test_objects_nearest_first_with_their_paths():
    module = tf.Module()
    module.inner = tf.Module()
    module.inner.x = tf.Variable(1.0)
    objects, path_by_object = tracking.ObjectGraphView(module).breadth_first_traversal()
    assert objects == [module, module.inner, module.inner.x]
    assert [step.name for step in path_by_object[module.inner.x]] == ["inner", "x"]


def test_variables_of_a_getter_are_restored(tmp_path):
    def getter(name, shape, dtype, initializer):
        return tf.Variable(tf.fill(shape, initializer))

    first = tf.Module()
    first._add_variable_with_custom_getter("w", shape=[2], initializer=3.0, getter=getter)
    path = tf.train.Checkpoint(first).write(tmp_path / "model")
    second = tf.Module()
    tf.train.Checkpoint(second).read(path)
    w = second._add_variable_with_custom_getter("w", shape=[2], initializer=0.0, getter=getter)
    assert w.numpy().tolist() == [3.0, 3.0]


def test_checkpoint_of_a_weak_reference(tmp_path):
    module = tf.Module()
    module.x = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(root=weakref.ref(module))
    path = checkpoint.write(tmp_path / "model")
    assert ("x/.ATTRIBUTES/VARIABLE_VALUE", []) in tf.train.list_variables(path)


def test_one_registration_for_a_type():
    load = tf.__internal__.saved_model.load
    version = load.VersionedTypeRegistration(tf.Module, 1, 1, 1)
    load.register_revived_type("a_type_of_this_test", lambda x: False, [version])
    with pytest.raises(AssertionError, match="Duplicate"):
        load.register_revived_type("a_type_of_this_test", lambda x: False, [version])


def test_all_objects_of_a_checkpoint():
    from tensorflow.python.checkpoint import checkpoint, graph_view

    root = tf.Module()
    root.a, root.b = tf.Variable(1.0), [tf.Variable(2.0)]
    found = checkpoint.list_objects(graph_view.ObjectGraphView(root))
    assert found[0] is root
    assert {id(thing) for thing in found} >= {id(root.a), id(root.b[0])}


def test_variables_are_added_and_listed_without_a_view():
    root = tf.Module()
    checkpoints = importlib.import_module("tensorflow.python.checkpoint.checkpoint")
    variable = checkpoints.add_variable(root, "v", shape=[2], initializer=tf.compat.v1.ones_initializer())
    assert variable.numpy().tolist() == [1.0, 1.0]
    assert checkpoints.list_objects(root) == [root, variable]


def test_variables_of_columns_are_tracked_by_their_own_names():
    class Holder(tf.__internal__.tracking.AutoTrackable):
        def add_weight(self, name, shape, dtype, initializer, trainable, use_resource, getter):
            return self._add_variable_with_custom_getter(
                name=name, shape=shape, dtype=dtype, initializer=initializer, getter=getter, overwrite=True
            )

    holder = Holder()
    state = tf.__internal__.feature_column.StateManager(holder, True)
    column = tf.feature_column.embedding_column(tf.feature_column.categorical_column_with_identity("digit", 3), 2)
    column.create_state(state)
    assert "digit_embedding/embedding_weights" in holder._trackable_children()
    assert "embedding_weights" not in holder._trackable_children()


def test_an_object_that_tracks_for_another_is_restored_later(tmp_path):
    class Wrapper(tf.__internal__.tracking.DelegatingTrackableMixin, tf.__internal__.tracking.Trackable):
        pass

    saved, inner = tf.__internal__.tracking.AutoTrackable(), tf.__internal__.tracking.AutoTrackable()
    saved.count = tf.Variable(7.0)
    path = tf.train.Checkpoint(thing=Wrapper(saved)).save(str(tmp_path / "model"))
    tf.train.Checkpoint(thing=Wrapper(inner)).restore(path)
    inner.count = tf.Variable(0.0)
    assert inner.count.numpy() == 7.0


def test_an_object_holds_its_random_generator(tmp_path):
    holder = tf.__internal__.tracking.AutoTrackable()
    with tf.name_scope("layer"):
        holder.generator = tf.random.Generator.from_seed(3)
    assert list(holder._trackable_children()) == ["generator"] and holder.generator.state.name == "layer/StateVar:0"
    path = tf.train.Checkpoint(holder=holder).save(str(tmp_path / "model"))
    assert "holder/generator/_state_var/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(path))
    draw = tf.function(lambda: holder.generator.normal([2]), input_signature=[])
    holder.draw = draw
    tf.saved_model.save(holder, str(tmp_path / "saved"))
    assert tf.saved_model.load(str(tmp_path / "saved")).draw().numpy().tolist() == draw().numpy().tolist()


def test_attributes_inside_a_scope_are_not_tracked():
    base = importlib.import_module("tapeflow._src.compat.tensorflow.inner_modules.table").find("python.trackable.base")
    holder = tracking.AutoTrackable()
    with base.no_automatic_dependency_tracking_scope(holder):
        holder.first = tf.Variable(1.0)
    holder.second = tf.Variable(2.0)
    assert list(holder._trackable_children()) == ["second"]


def test_what_an_object_holds_is_listed_for_those_who_save_it():
    model = tf.Module()
    model.w = tf.Variable(1.0)
    model.many = [tf.Variable(2.0)]
    held = model._unconditional_checkpoint_dependencies
    assert [name for name, _ in held] == ["w", "many"]
    assert held[0].ref is model.w
