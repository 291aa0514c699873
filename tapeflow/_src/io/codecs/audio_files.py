"""`tf.audio`: audio in WAV files of 16 bits as numbers from -1 to 1, and back."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.dtypes import float32, int32
from tapeflow._src.types.errors import InvalidArgumentError


class DecodeWav(NamedTuple):
    """The samples, and how many of them make a second."""

    audio: Any
    sample_rate: Any


def _bad(who: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"{who}: {what}")


def _read(data: bytes) -> tuple[np.ndarray, int]:
    """The samples (samples, channels) and their rate."""
    if len(data) < 12:
        raise _bad("decode_wav", "Data too short when trying to read string")
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _bad("decode_wav", f"Header mismatch: Expected RIFF and WAVE but found {data[:4]!r} and {data[8:12]!r}")
    channels = rate = bits = 0
    samples = None
    at = 12
    while at + 8 <= len(data):
        kind, (size,) = data[at : at + 4], struct.unpack_from("<I", data, at + 4)
        body = data[at + 8 : at + 8 + size]
        if kind == b"fmt ":
            if len(body) < 16:
                raise _bad("decode_wav", f"Bad format chunk size for WAV: Expected 16, 18, or 40, but got {len(body)}")
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if form not in (1, 0xFFFE):
                raise _bad("decode_wav", f"Bad audio format for WAV: Expected 1 (PCM), but got {form}")
            if bits != 16:
                raise _bad("decode_wav", f"Can only read 16-bit WAV files, but received {bits}")
        elif kind == b"data" and samples is None:
            if not channels:
                raise _bad("decode_wav", "the format must stand before the data")
            whole = len(body) // (2 * channels) * (2 * channels)
            samples = np.frombuffer(body[:whole], "<i2").reshape(-1, channels)
        at += 8 + size + (size & 1)
    if samples is None:
        raise _bad("decode_wav", "No data chunk found in WAV file")
    return samples.astype(np.float32) / np.float32(32768), rate


@public("audio.decode_wav")
def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples (samples, channels) in the bytes of a WAV file, and their rate.

    Fewer samples than desired are followed by silence; the last channel is repeated where there are too few.

    >>> tf.audio.decode_wav(tf.audio.encode_wav([[0.], [0.5]], 8000)).audio
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[0. ],
           [0.5]], dtype=float32)>
    """

    def run(contents: Any) -> list[Any]:
        audio, rate = _read(contents.numpy())
        if desired_channels >= 0:
            columns = np.minimum(np.arange(desired_channels), audio.shape[1] - 1)
            audio = audio[:, columns]
        if desired_samples >= 0:
            audio = audio[:desired_samples]
            audio = np.pad(audio, [(0, desired_samples - len(audio)), (0, 0)])
        signed = np.asarray(rate, np.uint32).view(np.int32)  # the file has 32 bits, the result a sign
        return [convert_to_tensor(np.ascontiguousarray(audio)), convert_to_tensor(signed)]

    text = convert_to_tensor(contents, None if _core.is_tensor(contents) else "string")
    shape = [None if size < 0 else size for size in (desired_samples, desired_channels)]
    return DecodeWav(*host_call(run, [text], [(float32, shape), (int32, [])]))


@public("audio.encode_wav")
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any:
    """Samples (samples, channels) from -1 to 1 as the bytes of a WAV file of 16 bits.

    >>> tf.audio.decode_wav(tf.audio.encode_wav([[0.25]], 44100)).sample_rate
    <tf.Tensor: shape=(), dtype=int32, numpy=44100>
    """

    def run(audio: Any, sample_rate: Any) -> list[Any]:
        samples, rate = audio.numpy(), int(sample_rate)
        if samples.ndim != 2:
            raise _bad("encode_wav", f"audio must be 2-dimensional{list(samples.shape)}")
        if rate <= 0:
            raise _bad("encode_wav", f"sample_rate must be in (0, 2^32), got: {rate}")
        channels = samples.shape[1]
        if not 1 <= channels <= 0xFFFF:
            raise _bad("encode_wav", f"channels must be in (0, 2^16), got: {channels}")
        numbers = np.rint(np.clip(samples * np.float32(32768), -32768, 32767)).astype("<i2")
        body = numbers.tobytes()
        form = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
        head = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(body))
        return [convert_to_tensor(b"RIFF" + struct.pack("<I", len(head) + len(body)) + head + body)]

    inputs = [convert_to_tensor(audio, float32), convert_to_tensor(sample_rate, int32)]
    return host_call(run, inputs, [("string", [])])[0]
