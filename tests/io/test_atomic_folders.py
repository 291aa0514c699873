"""Folders whose files belong together are old or new as a whole, whenever a process ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapeflow as tf
from tapeflow._src.io import atomic_folders
from tapeflow._src.io.atomic_folders import read_whole, replaced_folder


def filled(folder: Path, **content: str) -> Path:
    for name, text in content.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_new_folder_takes_the_place_of_the_old_one(tmp_path):
    folder = filled(tmp_path / "model", first="old", second="old", parts__one="old", parts__two="old")
    with replaced_folder(str(folder), os.path.join("parts", "")) as place:
        filled(Path(place), first="new", parts__three="new")
        assert (folder / "first").read_text() == "old"
    assert (folder / "first").read_text() == "new" and (folder / "second").read_text() == "old"
    assert sorted(os.listdir(folder / "parts")) == ["three"]
    assert os.listdir(tmp_path) == ["model"]


def test_an_error_leaves_the_old_folder(tmp_path):
    folder = filled(tmp_path / "model", first="old")
    with pytest.raises(KeyError), replaced_folder(str(folder), "none") as place:
        filled(Path(place), first="new")
        raise KeyError
    assert (folder / "first").read_text() == "old" and os.listdir(tmp_path) == ["model"]


def test_a_link_to_a_folder_stays_one(tmp_path):
    folder = filled(tmp_path / "model", first="old")
    (tmp_path / "link").symlink_to(folder)
    with replaced_folder(str(tmp_path / "link"), "none") as place:
        filled(Path(place), first="new")
    assert (tmp_path / "link").is_symlink() and (folder / "first").read_text() == "new"


def test_where_folders_cannot_be_exchanged_files_are_written_in_place(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_folders, "_can_exchange", lambda place: False)
    folder = filled(tmp_path / "model", first="old")
    with replaced_folder(str(folder), "none") as place:
        assert place == str(folder)


def test_saving_again_keeps_files_of_others(tmp_path):
    model = tf.Module()
    model.v = tf.Variable(1.0)
    tf.saved_model.save(model, tmp_path / "model")
    filled(tmp_path / "model", notes="mine", **{"assets.extra__words": "a"})
    model.v.assign(2.0)
    tf.saved_model.save(model, tmp_path / "model")
    assert float(tf.saved_model.load(tmp_path / "model").v) == 2.0
    assert (tmp_path / "model" / "assets.extra" / "words").read_text() == "a"
    assert (tmp_path / "model" / "notes").read_text() == "mine"


# Ends a child before its n-th step on the disk, and loads what it leaves.
KILLS = """
import os, sys
import tapeflow as tf

def model(number):
    found = tf.Module()
    found.v = tf.Variable(float(number))
    found.f = tf.function(lambda: found.v * 10.0 + float(number), input_signature=[])
    found.f.get_concrete_function()
    return found

STEPS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "ctypes.dlsym")
folder, old, new, step, ended, seen = sys.argv[1], model(1), model(2), 0, False, set()
while not ended:
    tf.saved_model.save(old, folder)
    child = os.fork()
    if child == 0:
        left = [step]
        def hook(event, arguments):
            if event in STEPS:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(7)
        sys.addaudithook(hook)
        tf.saved_model.save(new, folder)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = float(tf.saved_model.load(folder).f())
    assert found in (11.0, 22.0), found
    seen.add(found)
    step += 3
assert seen == {11.0, 22.0}, seen
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ends processes by fork")
def test_a_kill_at_any_step_leaves_the_old_model_or_the_new_one(tmp_path):
    run = subprocess.run([sys.executable, "-c", KILLS, str(tmp_path / "model")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text("0")
    rounds = []

    def read():
        first = (folder / "a").read_text()
        if len(rounds) < 2:
            rounds.append(first)
            with replaced_folder(str(folder), "") as made:
                for name in "ab" if len(rounds) == 1 else "abc":
                    Path(made, name).write_text(str(len(rounds)))
        return first + (folder / "b").read_text() + (folder / "c").read_text()

    assert read_whole(str(folder), read) == "222"
    assert rounds == ["0", "1"]


def test_an_error_of_a_folder_that_stays_is_raised_at_once(tmp_path):
    calls = []

    def read():
        calls.append(1)
        return (tmp_path / "missing").read_text()

    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError):
            read_whole(str(folder), read)
    assert len(calls) == 2
