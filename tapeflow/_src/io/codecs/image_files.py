"""`tf.io.decode_image`, `decode_png` and the like: image files as tensors (H, W, channels), and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.codecs.bmp import read_bmp
from tapeflow._src.io.codecs.gif import read_gif
from tapeflow._src.io.codecs.jpeg import jpeg_size, read_jpeg, write_jpeg
from tapeflow._src.io.codecs.png import COLOR_BY_CHANNELS, SIGNATURE, read_png, with_channels, write_png
from tapeflow._src.io.codecs.webp import is_webp, read_webp
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import ensure_shape
from tapeflow._src.ops.effects.host_call import CompositionCall, Place, host_call
from tapeflow._src.ops.image.color import convert_image_dtype
from tapeflow._src.ops.random.stateless import stateless_uniform
from tapeflow._src.ops.random.streams import uniform
from tapeflow._src.types.dtypes import as_dtype, int32, uint8, uint16
from tapeflow._src.types.errors import InvalidArgumentError

_JPEG = b"\xff\xd8\xff"


def _refuse(who: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"{who}: {what}")


def _file(contents: Any) -> Any:
    tensor = convert_to_tensor(contents, None if _core.is_tensor(contents) else "string")
    if tensor.shape.rank not in (0, None):
        raise _refuse("decode_image", f"contents must be scalar, got shape {tensor.shape}")
    return tensor


def _kind(data: bytes) -> str:
    for kind, start in (("JPEG", _JPEG), ("PNG", SIGNATURE), ("GIF", b"GIF8"), ("BMP", b"BM")):
        if data.startswith(start):
            return kind
    return "WebP" if is_webp(data) else ""


def _read(data: bytes, channels: int, wide: bool, who: str, jpeg: Callable[[bytes], np.ndarray] | None = None) -> Any:
    """The array in a file of any kind: three dimensions, or four of a GIF or WebP file."""
    kind = _kind(data)
    if who != "decode_image" and kind and (kind == "BMP") != (who == "decode_bmp"):
        raise _refuse(
            who, f"Trying to decode {kind} format using a wrong op. Use `decode_{kind.lower()}` or `decode_image`."
        )
    if kind == "JPEG":
        return read_jpeg(data, channels) if jpeg is None else jpeg(data)
    if kind == "PNG":
        return read_png(data, channels, wide)
    if kind == "GIF":
        if channels not in (0, 3):
            raise _refuse(who, f"channels must be 0 or 3 for GIF, got {channels}")
        return read_gif(data)
    if kind == "BMP":
        if channels == 1:
            raise _refuse(who, f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
        return with_channels(read_bmp(data), channels, 255)
    if kind == "WebP":
        if wide:
            raise _refuse(who, "WebP only supports uint8 for dtype")
        return read_webp(data, channels, who)
    raise _refuse(who, "Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required.")


def _still(found: np.ndarray, who: str) -> np.ndarray:
    if found.ndim == 4 and len(found) > 1:
        raise _refuse(
            who, f"Got {len(found)} frames, but animated gifs can only be decoded by decode_gif or decode_image."
        )
    return found[0] if found.ndim == 4 else found


def _check_channels(channels: int | None, allowed: tuple[int, ...], who: str) -> int:
    channels = channels or 0
    if channels not in allowed:
        raise _refuse(who, f"channels must be {', '.join(map(str, allowed[:-1]))} or {allowed[-1]}, got {channels}")
    return channels


@public("io.decode_image", "image.decode_image", "compat.v1.image.decode_image")
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """The image in a file of any kind: (H, W, channels), or (frames, H, W, channels) of a GIF or WebP file.

    It needs Pillow.

    >>> tf.io.decode_image(tf.io.encode_png(tf.constant([[[7]]], tf.uint8)))
    <tf.Tensor: shape=(1, 1, 1), dtype=uint8, numpy=array([[[7]]], dtype=uint8)>
    """
    channels = _check_channels(channels, (0, 1, 3, 4), "decode_image")
    dtype = as_dtype(dtype)
    if dtype.name not in ("uint8", "uint16", "float32"):
        raise ValueError(f"decode_image: dtype must be uint8, uint16 or float32; got {dtype.name}")

    def run(contents: Any) -> list[Any]:
        data = contents.numpy()
        found = _read(data, channels, dtype != uint8, "decode_image")
        if found.ndim == 4 and not expand_animations:
            found = found[0]
        return [convert_image_dtype(convert_to_tensor(np.ascontiguousarray(found)), dtype)]

    shape = None if expand_animations else [None, None, channels or None]
    return host_call(run, [_file(contents)], [(dtype, shape)])[0]


@public("io.decode_png", "image.decode_png", "compat.v1.image.decode_png")
def decode_png(contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None) -> Any:
    """The image (H, W, channels) in the bytes of a PNG file, or of another kind; it needs Pillow.

    >>> tf.image.decode_png(tf.image.encode_png(tf.constant([[[7]]], tf.uint8)))
    <tf.Tensor: shape=(1, 1, 1), dtype=uint8, numpy=array([[[7]]], dtype=uint8)>
    """
    channels = _check_channels(channels, (0, 1, 3, 4), "decode_png")
    dtype = as_dtype(dtype)
    if dtype not in (uint8, uint16):
        raise InvalidArgumentError.of(
            f"decode_png: Value for attr 'dtype' of {dtype.name} is not in the list of allowed values: uint8, uint16"
        )

    def run(contents: Any) -> list[Any]:
        found = _still(_read(contents.numpy(), channels, dtype == uint16, "decode_png"), "decode_png")
        return [convert_image_dtype(convert_to_tensor(np.ascontiguousarray(found)), dtype)]

    return host_call(run, [_file(contents)], [(dtype, [None, None, channels or None])])[0]


@public("io.encode_png", "image.encode_png", "compat.v1.image.encode_png")
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """An image (H, W, channels) of uint8 or uint16 as the bytes of a PNG file; a batch of images gives a batch.

    >>> tf.image.decode_png(tf.image.encode_png(tf.constant([[[7]]], tf.uint8)))
    <tf.Tensor: shape=(1, 1, 1), dtype=uint8, numpy=array([[[7]]], dtype=uint8)>
    """
    image = convert_to_tensor(image)
    known = image.shape.rank is not None
    shaped = not known or (image.shape.rank >= 3 and image.shape[-1] in (None, *COLOR_BY_CHANNELS))
    if image.dtype not in (uint8, uint16) or not shaped:
        raise _refuse(
            "encode_png",
            "image must be uint8 or uint16 with shape [height, width, channels], channels 1 to 4; "
            f"got {image.dtype.name} {image.shape}",
        )

    def run(image: Any) -> list[Any]:
        array = image.numpy()
        batch = array.reshape(-1, *array.shape[-3:])
        files = np.empty(len(batch), dtype=object)
        files[:] = [write_png(each, compression) for each in batch]
        return [convert_to_tensor(files.reshape(array.shape[:-3]), "string")]

    return host_call(run, [image], [("string", image.shape[:-3] if known else None)])[0]


@public("io.decode_bmp", "image.decode_bmp")
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """The image (H, W, channels) in the bytes of a BMP file; it needs Pillow.

    >>> head = b"BM" + bytes([58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0])
    >>> tf.io.decode_bmp(head + bytes(24) + bytes([3, 2, 1, 0]))
    <tf.Tensor: shape=(1, 1, 3), dtype=uint8, numpy=array([[[1, 2, 3]]], dtype=uint8)>
    """
    _check_channels(channels, (0, 1, 3, 4), "decode_bmp")

    def run(contents: Any) -> list[Any]:
        found = _read(contents.numpy(), channels, False, "decode_bmp")
        return [convert_to_tensor(np.ascontiguousarray(found))]

    return host_call(run, [_file(contents)], [(uint8, [None, None, channels or None])])[0]


@public("io.decode_gif", "image.decode_gif")
def decode_gif(contents: Any, name: str | None = None) -> Any:
    """The frames (frames, H, W, 3) in the bytes of a GIF file; it needs Pillow.

    >>> head = b"GIF89a" + bytes([1, 0, 1, 0, 128, 0, 0, 7, 8, 9, 0, 0, 0])
    >>> tf.io.decode_gif(head + bytes([44, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 68, 1, 0, 59]))
    <tf.Tensor: shape=(1, 1, 1, 3), dtype=uint8, numpy=array([[[[7, 8, 9]]]], dtype=uint8)>
    """

    def run(contents: Any) -> list[Any]:
        found = _read(contents.numpy(), 3, False, "decode_gif")
        return [convert_to_tensor(np.ascontiguousarray(found if found.ndim == 4 else found[None]))]

    return host_call(run, [_file(contents)], [(uint8, [None, None, None, 3])])[0]


@public("io.decode_webp", "image.decode_webp")
def decode_webp(contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None) -> Any:
    """The frames (frames, H, W, channels) in the bytes of a WebP file; it needs Pillow.

    Args:
        contents: The bytes of the file.
        channels: 3 or 4, as many as the file has; 0 takes what it has. Animations have 4.
        dtype: `tf.uint8`.
        name: A name for the operation in graphs.

    Returns:
        A tensor of uint8.

    >>> tf.io.decode_webp
    <function decode_webp at ...>
    """
    if as_dtype(dtype) != uint8:
        raise _refuse("decode_webp", f"dtype must be uint8; got {as_dtype(dtype).name}")

    def run(contents: Any) -> list[Any]:
        found = _read(contents.numpy(), channels, False, "decode_webp")
        return [convert_to_tensor(np.ascontiguousarray(found))]

    return host_call(run, [_file(contents)], [(uint8, None)])[0]


@public("io.decode_jpeg", "image.decode_jpeg")
def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """The image (H, W, channels) in the bytes of a JPEG file, or of another kind; it needs Pillow.

    >>> tf.io.decode_jpeg(tf.io.encode_png(tf.constant([[[7]]], tf.uint8)))
    <tf.Tensor: shape=(1, 1, 1), dtype=uint8, numpy=array([[[7]]], dtype=uint8)>
    """
    channels = _check_channels(channels, (0, 1, 3, 4), "decode_jpeg")

    def run(contents: Any) -> list[Any]:
        read = lambda data: read_jpeg(data, channels, ratio, try_recover_truncated)  # noqa: E731
        found = _read(contents.numpy(), channels, False, "decode_jpeg", read)
        return [convert_to_tensor(np.ascontiguousarray(_still(found, "decode_jpeg")))]

    options = (channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    run.raw_call = CompositionCall(decode_jpeg, (Place(0), *options), {})  # type: ignore[attr-defined]
    return host_call(run, [_file(contents)], [(uint8, [None, None, channels or None])])[0]


@public("io.decode_and_crop_jpeg", "image.decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """The part [first row, first column, rows, columns] of the image in a JPEG file.

    >>> tf.io.decode_and_crop_jpeg
    <function decode_and_crop_jpeg at ...>
    """
    channels = _check_channels(channels, (0, 1, 3), "decode_and_crop_jpeg")

    def run(contents: Any, window: Any) -> list[Any]:
        data = contents.numpy()
        if not data.startswith(_JPEG):
            raise _refuse("decode_and_crop_jpeg", "contents must be a JPEG file; use decode_image for others")
        whole = read_jpeg(data, channels, ratio, try_recover_truncated)
        top, left, height, width = window.numpy().tolist()
        inside = top >= 0 and left >= 0 and top + height <= whole.shape[0] and left + width <= whole.shape[1]
        if not inside or height <= 0 or width <= 0:
            raise _refuse("decode_and_crop_jpeg", "jpeg::Uncompress failed. Invalid JPEG data or crop window.")
        return [convert_to_tensor(np.ascontiguousarray(whole[top : top + height, left : left + width]))]

    inputs = [_file(contents), convert_to_tensor(crop_window, int32)]
    return host_call(run, inputs, [(uint8, [None, None, channels or None])])[0]


@public("io.encode_jpeg", "image.encode_jpeg")
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Any:
    """An image (H, W, 1 or 3) of uint8 as the bytes of a JPEG file; it needs Pillow.

    >>> tf.io.encode_jpeg
    <function encode_jpeg at ...>
    """
    image = convert_to_tensor(image, None if _core.is_tensor(image) else uint8)
    if image.dtype != uint8:
        raise ValueError(f"encode_jpeg: image must be uint8; got {image.dtype.name}")
    if format not in ("", "rgb", "grayscale"):
        raise _refuse("encode_jpeg", f"format must be '', grayscale or rgb, got {format}")

    def run(image: Any, quality: Any) -> list[Any]:
        array, level = image.numpy(), int(quality)
        if not 0 <= level <= 100:
            raise _refuse("encode_jpeg", f"quality must be in [0,100], got {level}")
        if array.ndim != 3:
            raise _refuse("encode_jpeg", f"image must be 3-dimensional{list(array.shape)}")
        wanted = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format]
        if array.shape[2] not in wanted:
            raise _refuse(
                "encode_jpeg", f"image must have {' or '.join(map(str, wanted))} channels, got {list(array.shape)}"
            )
        density = (density_unit, x_density, y_density)
        data = write_jpeg(array, level, progressive, optimize_size, chroma_downsampling, density, xmp_metadata)
        return [convert_to_tensor(data)]

    options = {"format": format, "progressive": progressive, "optimize_size": optimize_size}
    options |= {"chroma_downsampling": chroma_downsampling, "density_unit": density_unit, "x_density": x_density}
    options |= {"y_density": y_density, "xmp_metadata": xmp_metadata}
    call = CompositionCall(encode_jpeg, (Place(0),), {"quality": Place(1), **options})
    run.raw_call = call  # type: ignore[attr-defined]
    return host_call(run, [image, convert_to_tensor(quality, int32)], [("string", [])])[0]


@public("io.extract_jpeg_shape", "image.extract_jpeg_shape")
def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Any:
    """[height, width, channels] of the image in a JPEG file, without decoding it.

    >>> tf.io.extract_jpeg_shape(b"\\xff\\xd8\\xff\\xc0\\0\\x11\\x08\\0\\x04\\0\\x05\\x03")
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([4, 5, 3], dtype=int32)>
    """
    dtype = as_dtype(output_type)

    def run(contents: Any) -> list[Any]:
        return [convert_to_tensor(jpeg_size(contents.numpy()), dtype)]

    return host_call(run, [_file(contents)], [(dtype, [3])])[0]


@public("io.is_jpeg", "image.is_jpeg")
def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """Whether the bytes start as a JPEG file does.

    >>> tf.io.is_jpeg(b"\\xff\\xd8\\xff\\xe0")
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """

    def run(contents: Any) -> list[Any]:
        return [convert_to_tensor(contents.numpy().startswith(_JPEG))]

    return host_call(run, [_file(contents)], [("bool", [])])[0]


# ------------------------------------------------------------------------------------- what JPEG does to an image


@public("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Any:
    """An image as it comes out of a JPEG file of some quality, 0 to 100; it needs Pillow.

    >>> tf.image.adjust_jpeg_quality
    <function adjust_jpeg_quality at ...>
    """
    image = convert_to_tensor(image)
    channels, dtype = image.shape[-1], image.dtype
    encoded = encode_jpeg(convert_image_dtype(image, uint8, saturate=True), quality=jpeg_quality)
    decoded = decode_jpeg(encoded, channels=channels or 0)
    result = convert_image_dtype(decoded, dtype, saturate=True)
    return ensure_shape(result, image.shape)


def _check_qualities(lowest: int, highest: int) -> None:
    if not (0 <= lowest <= 100 and 0 <= highest <= 100):
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if lowest >= highest:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")


@public("image.random_jpeg_quality")
def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None) -> Any:
    """An image as it comes out of a JPEG file of a quality that is drawn; it needs Pillow.

    >>> tf.image.random_jpeg_quality
    <function random_jpeg_quality at ...>
    """
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(image, uniform([], min_jpeg_quality, max_jpeg_quality, int32, seed))


@public("image.stateless_random_jpeg_quality")
def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Any:
    """An image as it comes out of a JPEG file of a quality that the seed [a, b] draws; it needs Pillow.

    >>> tf.image.stateless_random_jpeg_quality
    <function stateless_random_jpeg_quality at ...>
    """
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = stateless_uniform([], seed, min_jpeg_quality, max_jpeg_quality, int32)
    return adjust_jpeg_quality(image, quality)
