"""Raw operations that give values as the bytes of a `Summary`, which the writers of event files take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.io.codecs.audio_files import encode_wav
from tapeflow._src.io.codecs.png import write_png
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import tensor_message
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import CompositionCall, Place, host_call
from tapeflow._src.types.dtypes import string
from tapeflow._src.types.errors import InvalidArgumentError


class _Building:
    """Computes the bytes of a summary of tensors; files know it as the call of a raw operation."""

    def __init__(self, values: Callable[..., list[Any]], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._values = values
        self.raw_call = CompositionCall(function, args, {}, whole=True)

    def __call__(self, *tensors: Any) -> list[Any]:
        found = messages.Summary(value=self._values(*tensors))
        return [convert_to_tensor(found.SerializeToString(), string)]


def _summary(
    function: Callable[..., Any], values: Callable[..., list[Any]], tensors: list[Any], options: tuple[Any, ...] = ()
) -> Any:
    """The tensor of bytes for what `values` makes of tensors when the graph runs."""
    given = [convert_to_tensor(x) for x in tensors]
    args = (*(Place(i) for i in range(len(given))), *options)
    return host_call(_Building(values, function, args), given, [(string, [])], reads=True)[0]


def _tag(tensor: Any) -> str:
    return str(tensor.numpy().decode(errors="replace"))


def scalar_summary(tags: Any, values: Any) -> Any:
    """Numbers under their tags."""

    def build(tags: Any, values: Any) -> list[Any]:
        if tags.shape != values.shape:
            text = f" (tag '{_tag(tags)}')" if tags.shape.rank == 0 else ""
            raise InvalidArgumentError.of(
                f"tags and values are not the same shape: {tags.shape.as_list()} != {values.shape.as_list()}{text}"
            )
        pairs = zip(np.reshape(tags.numpy(), [-1]), np.reshape(values.numpy(), [-1]))
        return [messages.Summary.Value(tag=tag.decode(errors="replace"), simple_value=float(x)) for tag, x in pairs]

    return _summary(scalar_summary, build, [tags, values])


def _limits() -> np.ndarray:
    positive = [1e-12]
    while positive[-1] < 1e20:
        positive.append(positive[-1] * 1.1)
    most = np.finfo(np.float64).max
    return np.array([-most, *(-x for x in reversed(positive)), 0.0, *positive, most])


_LIMITS = _limits()


def _histogram_of(array: np.ndarray) -> Any:
    """Buckets whose ends grow by a tenth; those next to each other that are empty are one."""
    numbers = np.asarray(array, np.float64).reshape(-1)
    if not np.isfinite(numbers).all():
        raise ValueError("Nan in summary histogram" if np.isnan(numbers).any() else "Infinity in summary histogram")
    counts = np.bincount(np.searchsorted(_LIMITS, numbers, side="right"), minlength=len(_LIMITS))
    ends: list[Any] = []
    sizes: list[Any] = []
    for end, count in zip(_LIMITS, counts):
        if count == 0 and sizes and sizes[-1] == 0:
            ends[-1] = end
        else:
            ends.append(end)
            sizes.append(float(count))
    low, high = (numbers.min(), numbers.max()) if numbers.size else (_LIMITS[-1], _LIMITS[0])
    return messages.HistogramProto(
        min=float(low), max=float(high), num=float(numbers.size), sum=float(numbers.sum()),
        sum_squares=float((numbers * numbers).sum()), bucket_limit=ends, bucket=sizes,
    )  # fmt: skip


def histogram_summary(tag: Any, values: Any) -> Any:
    """The histogram of values."""
    return _summary(
        histogram_summary,
        lambda tag, values: [messages.Summary.Value(tag=_tag(tag), histo=_histogram_of(values.numpy()))],
        [tag, values],
    )


def _as_bytes(images: np.ndarray) -> np.ndarray:
    """Floats scaled to integers from 0 to 255: as they are from 0 on, else around 127."""
    if images.dtype == np.uint8:
        return images
    result = np.zeros(images.shape, np.uint8)
    for index, image in enumerate(np.asarray(images, np.float64)):
        known = image[np.isfinite(image)]
        low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
        if low < 0:
            largest = max(abs(low), abs(high))
            scaled = image * (127.0 / largest if largest > 1e-6 else 0.0) + 128.0
        else:
            scaled = image * (255.0 / high if high > 1e-6 else 0.0)
        result[index] = np.nan_to_num(scaled).astype(np.uint8)
    return result


def image_summary(tag: Any, tensor: Any, max_images: int = 3, bad_color: Any = None) -> Any:
    """The first images of a batch (k, H, W, channels)."""

    def build(tag: Any, tensor: Any) -> list[Any]:
        found = []
        for index, image in enumerate(_as_bytes(tensor.numpy()[:max_images])):
            own = f"{_tag(tag)}/image" if max_images == 1 else f"{_tag(tag)}/image/{index}"
            file = messages.Summary.Image(
                height=image.shape[0], width=image.shape[1], colorspace=image.shape[2],
                encoded_image_string=write_png(image, -1),
            )  # fmt: skip
            found.append(messages.Summary.Value(tag=own, image=file))
        return found

    return _summary(image_summary, build, [tag, tensor], (max_images,))


def audio_summary(tag: Any, tensor: Any, sample_rate: Any, max_outputs: int = 3) -> Any:
    """The first sounds of a batch (k, frames, channels) or (k, frames)."""

    def build(tag: Any, tensor: Any, rate: Any) -> list[Any]:
        found = []
        for index, samples in enumerate(tensor.numpy()[:max_outputs]):
            frames = samples.reshape(len(samples), -1)
            own = f"{_tag(tag)}/audio" if max_outputs == 1 else f"{_tag(tag)}/audio/{index}"
            content = encode_wav(convert_to_tensor(frames), int(rate)).numpy()
            file = messages.Summary.Audio(
                sample_rate=float(rate), num_channels=frames.shape[1], length_frames=len(frames),
                encoded_audio_string=content, content_type="audio/wav",
            )  # fmt: skip
            found.append(messages.Summary.Value(tag=own, audio=file))
        return found

    return _summary(audio_summary, build, [tag, tensor, sample_rate], (max_outputs,))


def tensor_summary(tag: Any, tensor: Any, serialized_summary_metadata: Any) -> Any:
    """A tensor, and what is known about it."""

    def build(tag: Any, tensor: Any, metadata: Any) -> list[Any]:
        about = messages.SummaryMetadata.FromString(metadata.numpy())
        return [messages.Summary.Value(tag=_tag(tag), tensor=tensor_message(tensor), metadata=about)]

    return _summary(tensor_summary, build, [tag, tensor, serialized_summary_metadata])


def merge_summary(inputs: Any) -> Any:
    """Several summaries as one; InvalidArgumentError if two have one tag."""

    def build(*parts: Any) -> list[Any]:
        found = [value for part in parts for value in messages.Summary.FromString(part.numpy()).value]
        tags = [value.tag for value in found if value.tag]
        repeated = next((tag for tag in tags if tags.count(tag) > 1), None)
        if repeated is not None:
            raise InvalidArgumentError.of(f"Duplicate tag {repeated} found in summary inputs")
        return found

    given = [convert_to_tensor(x) for x in inputs]
    call = _Building(build, merge_summary, ([Place(i) for i in range(len(given))],))
    return host_call(call, given, [(string, [])], reads=True)[0]


ROWS: list[tuple[str, str, Any]] = [
    ("AudioSummaryV2", "tag, tensor, sample_rate, max_outputs=3", audio_summary),
    ("AudioSummary", "tag, tensor, sample_rate, max_outputs=3", audio_summary),
    ("HistogramSummary", "tag, values", histogram_summary),
    ("ImageSummary", "tag, tensor, max_images=3, bad_color=None", image_summary),
    ("MergeSummary", "inputs", merge_summary),
    ("ScalarSummary", "tags, values", scalar_summary),
    ("TensorSummaryV2", "tag, tensor, serialized_summary_metadata", tensor_summary),
]
