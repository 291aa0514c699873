"""`tf.strings.unicode_script`: the script of each character, numbered as the ICU library numbers them."""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.dtypes import int32

# Lengths of ranges of code points from 0 on, each with its script: uint32 numbers, lowest bytes first, compressed.
_RANGES = (
    "eNrtl9tvVNcVxvftXGfmzBzPeMYzY8+ML9jGYGwDxjaGcEkLQUaGBAohQRFSQ74WaCCFRCEoFxElLgo0l4qEWE0ChBJIpZKWNmlISmjVqn9Boz71"
    "oc996FPbl1b9zmGgKaJNUauml7Okn9fa17P32nutPV4lKmWbDAlZzhJLlMpS1MmPy33CYllZBbFPmkAKHShEWgYGMtZRnYxsFMiKIHBywTOukudd"
    "iV6tsJBoLTGWd1HNG9j5FCwlhU0CIhVHUzeIr1KyoqTcQ7tLBV0Sy7o4umtYLZwTYHIr7a0LnlDIPiHRvllBbpZIdY2ilXO0qBSyHNeh7vSNzPpK"
    "VHxjJFyjoEiRtkOk0TAse816Y1zWGdoSFstlonMSdo51OY6j7RB1HX6X2mq265xm2YFhXaTDnA+dlfBIpIvEIYpYWQW/Wa9py2wWhjqddeI+us71"
    "1rkuUqTtEEUslr1mva47xFyvb6n7UN1cb7eGpjbUUVkSFdtRvUa628C63off7rZJgNZuC5kefpuUSK5Hw22WTY8DFdsWba6dZa8n08oaUiI+sVq5"
    "umadaeUIImNbxe2qNYNMhe1kUVPbFYNcRaESlTt5ep0abdQekZ0KDsuyk7clLtMrnTZ81uvONJb28u6J9t45UG1sJRZpa9qlNhWXI9um7RPT1sAd"
    "fRI9fQZ9sZbIEqfPCNU3Byfbe9MckbaIwry0FCYtWtaluIcU10Itm/bcpu68SVuWeqJp304aKY1KysYWW8EmT/V3dGhMNbRINRxkBvj9gRRa5ynh"
    "oTA/jcwgfUHUYBr3lbjykh2jqkrIqhRelf6u2thWdTCvamFNv4/6sER62MTIYZ7ycG0x9784hfmTBpVJG6lJ3oHJRql9jPdnbMUuiY5dCqldnJsE"
    "tEO5AutvMxi8TWPlQ4tXuDArxu/SyBJ91/BXPJffo1902n3IhZZSZIgjjZDSJlowZIWF3rIVSHeEfw3JlKW7piyDpZLnI0W5yMxhk96mdptZ4xp1"
    "1o1SZ0kQ95HIU0fZxSNpfmWrYLwzQ6n4L3MVMmWNhsihU2bRy2zEtTCXyXKVhGJuWQuDV0SZ/VtxUogFBwTPheO+LIbGJSIa5QOOBcf55A0YX8Zb"
    "vCyAXFZKefEZ/z0a7iYxiEoosS1M4+OwwrUy1oQMmd3CsvBCI1WLK0xIj2FLgecgldAFKe4pUhctzLMk7mth7ImG1SPSyBXrLK0U9ZY7xVBRiruL"
    "58SVcKX4Y6hxbK7G2FwPw0/P/2IBO9y7D7voEg9wp6P0i1ceQKo8uFTDFzbG73GxZq+L9F4bDX/BBq5nQ8+DKcgHO1o0pqe5Y+FPM5dM19uZoVd7"
    "CFbz3hGzutF++5NtsJ4s7fdh8zZf5S/emMf3weP5mrLibjfaC/Zz5H4bZ1rSKLUYjJAHQ4VdYS+cchqWtlDJ8y4QSVQTP/9VFWK3UjzFlUphiepH"
    "QJ2T0Q4Cqdxuei1PTORVZvoZtnInPMer71ZK+PTRIH1Z567sFnUdzbLDno7weR7MsyMSFZInimRHFIKRLhwasRDdlEGh4YkNvG0ZWjIYYo2Uh9Gx"
    "W2PkS1lIWWWvnpoHXatmeG7bLNRGuZ/RnuUGwfIBbPSGF9UW0hMLbfR828T0f83F4jfo9TdewNgmD8VNPtxNJ2APcR9DEvOJGuL34nLxAO/7gcYL"
    "9eddeM8PI3+aractWKfb72Wfeyt7eEf3rERjS9sxg8IxhQXHzAT7TFhwqTXpmODeJwz8CeZr0nim8fUG+g4yTxz0sORheuXh4uOMwcfzj3HUYy2H"
    "+H4dSsM5tBHr7h7DovUZ4sBe3/+uC//dXtTp94ErnP0Kb++VafT/0MXAe1vQ/qMCSu97mF5lUFtFD61a/Sh3+ijf0RMO/BM2Rh9hdn/ERd9JDzte"
    "4a+EzhRaXuOuX1sF5wx9RwzJktQZG5MvWvBftGGOMOsf4ddIkbZDFLGIlF6zRRN5hC/ZEcYwbeeIZo/nsP1t9ny7hjte5/pfP4slZ5l5znbh82+m"
    "4L9pI1PNY+JVrvDVJaieYu4+xffo1BUs+9792PRSGvIl5zJnJu5lfpfUYs07dNmDf3kN3A/oeZL6oIo7vuti0zsdmPgW/X1OYpAE53x0nGN2Os/1"
    "n2f5/Do4FzgHmX+BJ9m0vQtc4QUb9kWWyZymti9ydReXoPz99yCfzmJhd4bv9ezOB7B3J/e2M4Wf7vwQQ2s5w9qfY+0338fEYQf144yo44zo4ztQ"
    "e5ZR8KyPNVM+/Cl6kLROWchPvYN7f7ATU9sNJrbzF8v2lZCz8mW+Mh+loMIAf5h1IWY//mgA3uzvIYu1wgh0IYQpujj6ssHuGf5mmGGszHCNM8wW"
    "M0Zsx+8YZX2MstuElqFwmeMcWRNGTooS1gSzKDCzbeVbVxYz+AKjci1RIoplFesoO6aFjGM7itpVcczzBJrl9rgso8zKPlcjezPbe8hCcXRfFtY+"
    "3qN9G+Ewr4fjKtaKWOO/wOAljeASI/MSvXNpH5Z+yDj6UOBnR5lrjs7F+rcYL0S9FeJzYj2Wi5/A8NZXiYp/o6rodyp8Yq7+ZiW8eco07avoG/rf"
    "yLW2aA6nOde1+aK5Q2XFc1ixvZj9A8xn1rmf3styp9GrFzGH3v6OGEdFyIISmbiPJ/huiQC2mMUvhRtnsYgDHLuNbWlRiN+mcbZF2bWfuhZ7fxoH"
    "OeddZIZ9A9ZZHKf5qjvxiTmx1vyOI+biG+w3JubEc/wq7MJomKJWOMy7MxLWUQt/janwXZ5SDTvEU/itzEH8TZEikUT+P+Vff/dV4s3PRK75XXMV"
    "/71nUCZ3EvMfnp3nXbc6b2GFMomDZNXJ+X7qfPqvSn4zG/DXJ6PtH89tn9az1MyWkXTdsAopvJuOyX9m/pY37Mm6Bb/erK/+n7hT/55dGHGWf3PN"
    "UpF0iDTPwuJ9+M0n+v0pSQ2JJJJIIokkkkgiiSSSyD8t/i38X5tIIokkkkgiiSSSSCKJJHKr8mes/jWl"
)


@cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    """Where each range ends, and its script."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(_RANGES)), np.uint8).reshape(4, -1)
    numbers = planes.T.copy().view("<u4")[:, 0].astype(np.int64)
    return np.cumsum(numbers[::2]), numbers[1::2].astype(np.int32)


def _scripts(points: Any) -> list[Any]:
    ends, scripts = _table()
    values = points.numpy()
    outside = (values < 0) | (values > 0x10FFFF)
    found = scripts[np.searchsorted(ends, np.where(outside, 0, values), side="right")]
    return [convert_to_tensor(np.where(outside, np.int32(-1), found).astype(np.int32))]


@public("strings.unicode_script", "compat.v1.strings.unicode_script")
def unicode_script(input: Any, name: str | None = None) -> Any:
    """The scripts of code points as the ICU library numbers them (25 is Latin, 8 Cyrillic); -1 for no character.

    >>> tf.strings.unicode_script([ord("a"), ord("я"), -1])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([25,  8, -1], dtype=int32)>
    """
    points = convert_to_tensor(input, int32)
    return host_call(_scripts, [points], [(int32, points.shape)])[0]
