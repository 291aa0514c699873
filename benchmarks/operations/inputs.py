"""The arrays that rows name as their arguments, in three sizes: about 100, 10,000 and 1,000,000 elements."""

SIZES = ("tiny", "medium", "large")


def inputs(np, size: str) -> dict:
    """Arrays by name. float32 but for `d_` (float64), `i_` (int64), `j_` (int32), `b_` and `c_` (complex64)."""
    random = np.random.default_rng(0)
    n = {"tiny": 100, "medium": 10_000, "large": 1_000_000}[size]
    rows, columns = {"tiny": (4, 24), "medium": (100, 100), "large": (1000, 1000)}[size]
    images, side, channels = {"tiny": (1, 6, 3), "medium": (2, 18, 16), "large": (8, 56, 40)}[size]
    batch, time, width = {"tiny": (2, 5, 10), "medium": (8, 20, 64), "large": (64, 64, 256)}[size]
    order, pile = {"tiny": (4, 6), "medium": (50, 16), "large": (500, 10_000)}[size]
    depth = {"tiny": 4, "medium": 8, "large": 24}[size]
    square = random.standard_normal((order, order))
    small = random.standard_normal((pile, 4, 4)).astype(np.float32)
    prime = {"tiny": 101, "medium": 9973, "large": 999_983}[size]

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def uneven(*shape):
        return normal(*shape) + 1j * normal(*shape)

    arrays = {
        "v": normal(n),
        "w": normal(n),
        "p": np.abs(normal(n)) + 0.1,
        "u": random.uniform(0.001, 0.999, n).astype(np.float32),
        "x": normal(rows, columns),
        "y": normal(rows, columns),
        "row": normal(columns),
        "column": normal(rows, 1),
        "cube": normal(batch, time, width),
        "keys": normal(batch, time, width),
        "middle": normal(batch, 1, width),
        "outer": normal(1, time, 1),
        "short": normal(n // 5, 5),
        "pairs": normal(n // 2, 2),
        "triples": normal(n // 3, 3),
        "wide": normal(4, n // 4),
        "columns_of_16": normal(max(n // 16, 1), 16),
        "image": normal(images, side, side, channels),
        "even_image": normal(images, side, side, channels // 4 * 4 or 4),
        "kernel": normal(3, 3, channels, channels),
        "kernel_5": normal(5, 5, channels, channels),
        "kernel_1": normal(1, 1, channels, channels),
        "kernel_in_groups": normal(3, 3, (channels // 4 * 4 or 4) // 4, channels // 4 * 4 or 4),
        "depthwise": normal(3, 3, channels, 1),
        "rgb": normal(images, side, side, 3),
        "kernel_rgb": normal(7, 7, 3, 16),
        "signal": normal(images, side * side, channels),
        "filter": normal(3, channels, channels),
        "volume": normal(1, depth, depth, depth, 8),
        "kernel_3d": normal(3, 3, 3, 8, 8),
        "channel": normal(channels),
        "width": normal(width),
        "labels": np.abs(normal(rows, columns)) / columns,
        "spd": (square @ square.T / order + np.eye(order)).astype(np.float32),
        "side": normal(order, 3),
        "small": small,
        "small_spd": small @ small.transpose(0, 2, 1) + np.eye(4, dtype=np.float32),
        "small_side": normal(pile, 4, 2),
        "small_vector": normal(pile, 4),
        "state": normal(batch, width),
        "weights": normal(width, 3 * width),
        "recurrent": normal(width, 3 * width),
        "d_v": random.standard_normal(n),
        "d_p": np.abs(random.standard_normal(n)) + 0.1,
        "d_x": random.standard_normal((rows, columns)),
        "d_u": random.uniform(0.001, 0.999, n),
        "c_v": uneven(n),
        "c_w": uneven(n),
        "c_x": uneven(rows, columns),
        "c_prime": uneven(prime),
        "c_smooth": uneven({"tiny": 90, "medium": 9000, "large": 900_000}[size]),
        "c_lines": uneven(n // 50 or 1, 50),
        "i_class": random.integers(0, columns, rows),
        "i_row": random.integers(0, rows, rows),
        "i_sorted": np.sort(random.integers(0, rows, rows)),
        "i_many": random.integers(0, rows, n),
        "i_vector": random.integers(0, 100, n),
        "i_other": random.integers(1, 100, n),
        "i_x": random.integers(0, 1000, (rows, columns)),
        "j_vector": random.integers(0, 100, n).astype(np.int32),
        "j_other": random.integers(1, 100, n).astype(np.int32),
        "j_x": random.integers(0, 1000, (rows, columns)).astype(np.int32),
        "j_wide": random.integers(0, 1 << 30, n).astype(np.int32),
        "b_mask": random.random(n) > 0.5,
        "b_rows": random.random(rows) > 0.5,
        "b_x": random.random((rows, columns)) > 0.5,
    }
    return arrays | {name: np.ascontiguousarray(array) for name, array in arrays.items()}
