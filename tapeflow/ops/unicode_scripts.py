"""`tf.strings.unicode_script`: the script of each character, numbered as the ICU library numbers them."""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import Any

import numpy as np

from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.ops.host_call import host_call
from tapeflow.types import wire
from tapeflow.types.dtypes import int32

# Lengths of ranges of code points, from 0 on, each with its script: numbers of seven bits a byte, compressed.
_RANGES = (
    "eNp9VltsnMUVnjMz/3V3/714vfbu2t71JbbjxLGdqx0HcqEEUCIHCE0IRChSCV8bKIQSEBABVrgY1AAJFbeohEvSkNCqgVKSJtCQVq14qCr1oUWt"
    "VPHQ10oVD1Xbh1bqN78Xt0JVH75zzpyZM3Mu85/5N6pa1SfGlFTzhKc6qqIaxM9MdUh5VGivrPaLTUSZRMNxSSwk5U4nTkaZWJ8kQSF5UkItZyQU"
    "DBqN5YQxgjVtIeptFn5bBp4W5RMJIZr25E0i1hmpaZG7KPfppE+wro/WfeN6+aIE0zsp71z2qEb+UUHXTRpykyDTtwrt3KOkM8jTrlvfEFvJx1rV"
    "YmsFodXQRIVyQIg1sBxHLb21IXWWssDjuEqYgsAvUFegHeWA0AvgueRea94UDMcBLHWOFwsxTF4QEY5XiIDQhJfXiFt6Q1nyeVjybD5I15gG/W3Q"
    "L6JCOSA04XEctfSmERB2QV9qxND99LffwJBbcjcWQqey0xtk+y28hTU8u98nErT3e8gN8GyigygMGIStsR0IoFPZo0zfOY4Gcu3UEB1ETHjt9K6l"
    "s+20ICSVdTqv23PI1ThPrGhxv2ZRqGnU3LiX1es16CSPCOnVCDiWXt6WdMys9PqIqTe9Wawd5O1TXYOLoDs5S3hEZ0vu6NTp2Mk+5ZiwnU1cOyQY"
    "GLIYSrkgTwRDVumhRXhDugazNMl6hMaSrCibndWl6zKMIkNvyKUlL27x3v8xlyefaslXEc2MQS3jY4ev4ROz3nB3t8GWplGZZoDcCF0YyaB9iVYR"
    "ykuzyI0yHYQezeK2Djrf4afQda2kLiqqM+V1H7vqAZbUPWwejtEYF2THbQoZZ6HHe1YyBSszWDptUZv2kZnmNZhudnSt4RVas36foHufRmYf9yYS"
    "ykVZj61XWoxeabDh3pXrQ9j1kzca5Alz4/g3o5DnMTMmG94bwoioHBGIVSI+YRS/WuVhsOolEk6QWiJXlXBzVZK1whLJrK5W2D98YrDFw1bv+AIN"
    "6laR54kkXSNoI3c9JiKyPGan4jfPRqVTypaFXNWgqQrolTwG2ZPoDFuaVOtEUS2uGmXxsqeqNGjHG4Ga1cv+yrrTRvANNTYpcGhWDwQeguC/L8Lk"
    "Ot7mdQlkXUcmSiv9/9AMt6tR1IqCXcUsPpVijQ7zo1NSZJsrVlVUtKJLobJF5g07yqyGaGXKom6pkFc8LPEEt5X4EaqmN6CyKFQaHG1QjdINaqwi"
    "6ubKaVGXVxQ3qH+dkKLBs9FigzWLI4w/Lj/QXytjT3jzIQnRp+5g2KuYpKg6gkx1dK1BrHxM3hJi8z0hsvf4aMbLttGvbQN3ZyB3d5cMZmYYuopn"
    "2FxmGl1s2ZsiJJt4Cwm7qdl11WOd8B7ruC+Gz8s9j/+kZQnfjIjVtlXNqK/3l91Hy/t8nNxZyqKjZDFRemIT/qKLGvuKgwiqWXjGQ62Nl4MQQrcQ"
    "t31LF/FnrTXLukFrrNbDSMgL4qJIRIf9zGAbYV2G2f7nhNMMh1Wdf9AyKmbCRpnYBkPzS3oBhuOAKwMVszjsvhOCGtFGaCI/oZFM9OHghAd3d0aV"
    "QaS28f7lKEkyRo3IIX5FdxpMfD0PkTqXDfREMD31HKu4y0PPKoa0auAKi+SKEVwfja/oWc58LPcx8H2x82T4aZZq5evC/L8uRwTn9fYIle0xwu2v"
    "sHmNMaAxwVJCj/HgdFw5wE/hQPOINJ6ncfS8jKPtLX5f+i3x4L0lXbdy5a21u3iB79qA5o7OZ3lQ+VnRWEZpigunPITkhuieYjamLOIp9nWi+aQ0"
    "n5Mmhh5iO3kowur7man7K4/wS32k7WHaPVw6yJfuYBbBwetx3c1rsGJrjgjgbx0+R3/ic3JKo8F6jFymU+Yyz9WXZQbDP+HsyHnZga6fShkdFyTC"
    "zEaLno1M38ZNDzIFD/LtfUUCxK+Ij1UP8E14IMTQG1y452XuVe7NoPQahaWvyUYEJymJI9aRvCOZkzScPso8xEcp2WeoC59xHjhSccPAEe2I54hI"
    "tDBvHJFnaEjiuZXaEeNWfluw+x1n9I704NrjLtDjckqw+hQXDZ6SPlx9glWMT9A6V2/D1KsujldlNepvckX+Tdag8KZc5v/Mj+R2bH9BspAXJLjk"
    "jnQkvOT8cqSnJfFaXmLo8SXZjPBDVz5HMh9KHde+Rwe2vyvdmPqezPETP02TUUeS0xKj+zSdbp5xIZ9xujNyHYKzbldHlp7lrCwMo7MumLP023/f"
    "6RxZtCBRxzjel3MszY/lPBP2OHvs8v4c/xyOBXvvwD17mZS9GfxC9n7UjrPhNdzxmk8a+MR+Vy5chQv2EDdovMit4heZA/2i7EHPU3TNf4qebt4S"
    "I97CqhDtWzy0bXnXw60fyF5s2W0xtZs/U7s3QI6JvMQ+KR8zxbqY4B9jx+j0rH9MPjUfywiiY/L3qyGV47o8AVMuwlZCHDYvyRMl3DnHWubmGHM0"
    "52Jhm4Cd47v1x0H8jb0OQ2wAVyojRRXyjEB6lJVp1YHNyTHeObbgnXyaq2pO8FW2jGsIrVyj0Sl3fTyrJG08rqVsTDsS69kad6VjcW8A18y3nd86"
    "w5OOLFeHvf15ePt5gff/JkbAZ6g4qVOuCW/ydyzsRTqfXKTf8UWXwovyucbajxiWfCSzMX4phzlXOCyLsfVtLogd0W/LUR9fUVtxhfo5XeAHWSd0"
    "+q+t3f82Yj2vn///5q3XtiXPw3xp/ZfxxZzbI2jt9cV+bu+i9tI9vFReyfXPaSxln7ydSc0zevd0OyxiFX4oahI1JWWtcumiSPHlVQl8xTL8PlBh"
    "2nsdDtB8F2ezqpw+r5Occ4/CMHlPWpYZPMRtb1TuUeDihEqPhob/J0FazCDlhkcFajG+44q3Ri3iLk+F+OzXutiHD5rFDD4TPlWHRnnj3ltbfL0T"
    "x23xTxn8arB47g9LWM0e7FGzgs9Fjvwzg38Dn/lJEg=="
)


@cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    """Where each range ends, and its script."""
    numbers = np.asarray(wire.decode_integers(wire.LENGTH, zlib.decompress(base64.b64decode(_RANGES))))
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
    [25, 8, -1]
    """
    points = convert_to_tensor(input, int32)
    return host_call(_scripts, [points], [(int32, points.shape)])[0]
