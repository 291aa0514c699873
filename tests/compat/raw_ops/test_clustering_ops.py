"""Raw operations of k-means."""

import numpy as np
import pytest

import tapeflow as tf

raw = tf.raw_ops


def test_nearest_centers():
    centers = [[1.0, 1.0], [4.0, 4.0], [9.0, 9.0]]
    found = raw.NearestNeighbors(points=[[0.0, 0.0], [5.0, 5.0]], centers=centers, k=2)
    assert found.nearest_center_indices.numpy().tolist() == [[0, 1], [1, 0]]
    np.testing.assert_allclose(found.nearest_center_distances, [[2.0, 32.0], [2.0, 32.0]])
    assert raw.NearestNeighbors(points=[[0.0, 0.0]], centers=centers, k=9)[0].shape == [1, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be positive"):
        raw.NearestNeighbors(points=[[0.0]], centers=[[0.0]], k=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="points have 1 coordinates, centers 2"):
        raw.NearestNeighbors(points=[[0.0]], centers=[[0.0, 1.0]], k=1)


def test_many_points_go_in_pieces():
    points = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
    indices, _ = raw.NearestNeighbors(points=points, centers=points[:5], k=1)
    wanted = ((points[:, None] - points[None, :5]) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(indices[:, 0], wanted)


@pytest.mark.parametrize("retries", [-1, 0, 3])
def test_first_centers_lie_apart(retries):
    points = np.repeat(np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]], np.float32), 20, 0)
    found = raw.KmeansPlusPlusInitialization(points=points, num_to_sample=3, seed=7, num_retries_per_sample=retries)
    assert sorted(map(tuple, found.numpy().tolist())) == [(0.0, 0.0), (0.0, 100.0), (100.0, 0.0)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_to_sample must be in"):
        raw.KmeansPlusPlusInitialization(points=points, num_to_sample=61, seed=7, num_retries_per_sample=retries)


def test_chains_go_to_far_points():
    distances = np.zeros(100, np.float32)
    distances[30] = 10.0
    assert int(raw.KMC2ChainInitialization(distances=distances, seed=3)) == 30
    assert int(raw.KMC2ChainInitialization(distances=distances * 0, seed=3)) == 0
