"""Hashes of byte strings with fixed values: FarmHash's fingerprint, Murmur's 64-bit hash, SipHash."""

from __future__ import annotations

_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995
DEFAULT_KEY = 0xDECAFCAFFE


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotate(x: int, places: int) -> int:
    x &= _MASK
    return ((x >> places) | (x << (64 - places))) & _MASK


def _shift_mix(x: int) -> int:
    x &= _MASK
    return x ^ (x >> 47)


def _mix(u: int, v: int, factor: int) -> int:
    a = _shift_mix((u ^ v) * factor)
    return (_shift_mix((v ^ a) * factor) * factor) & _MASK


def _short_fingerprint(data: bytes) -> int:
    length = len(data)
    factor = _K2 + 2 * length
    if length >= 8:
        a, b = (_word(data, 0) + _K2) & _MASK, _word(data, length - 8)
        c, d = (_rotate(b, 37) * factor + a) & _MASK, ((_rotate(a, 25) + b) * factor) & _MASK
        return _mix(c, d, factor)
    if length >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return _mix(length + (first << 3), last, factor)
    if length:
        y, z = data[0] + (data[length >> 1] << 8), length + (data[-1] << 2)
        return (_shift_mix((y * _K2) ^ (z * _K0)) * _K2) & _MASK
    return _K2


def _middle_fingerprint(data: bytes) -> int:
    length = len(data)
    factor = _K2 + 2 * length
    start = _K1 if length <= 32 else _K2
    a, b = (_word(data, 0) * start) & _MASK, _word(data, 8)
    c, d = (_word(data, length - 8) * factor) & _MASK, (_word(data, length - 16) * _K2) & _MASK
    y = (_rotate(a + b, 43) + _rotate(c, 30) + d) & _MASK
    z = _mix(y, (a + _rotate(b + _K2, 18) + c) & _MASK, factor)
    if length <= 32:
        return z
    e, f = (_word(data, 16) * factor) & _MASK, _word(data, 24)
    g, h = ((y + _word(data, length - 32)) * factor) & _MASK, ((z + _word(data, length - 24)) * factor) & _MASK
    return _mix((_rotate(e + f, 43) + _rotate(g, 30) + h) & _MASK, (e + _rotate(f + a, 18) + g) & _MASK, factor)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


def fingerprint64(data: bytes) -> int:
    """FarmHash's 64-bit fingerprint.

    >>> fingerprint64(b"a")
    12917804110809363939
    """
    length = len(data)
    if length <= 16:
        return _short_fingerprint(data)
    if length <= 64:
        return _middle_fingerprint(data)
    x = 81
    y = (81 * _K1 + 113) & _MASK
    z = (_shift_mix(y * _K2 + 113) * _K2) & _MASK
    v = w = (0, 0)
    x = (x * _K2 + _word(data, 0)) & _MASK
    end = ((length - 1) // 64) * 64
    at = 0
    while at != end:
        x = (_rotate(x + y + v[0] + _word(data, at + 8), 37) * _K1) & _MASK
        y = (_rotate(y + v[1] + _word(data, at + 48), 42) * _K1) & _MASK
        x ^= w[1]
        y = (y + v[0] + _word(data, at + 40)) & _MASK
        z = (_rotate(z + w[0], 33) * _K1) & _MASK
        v = _weak(data, at, v[1] * _K1, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
        z, x = x, z
        at += 64
    factor = (_K1 + ((z & 0xFF) << 1)) & _MASK
    at = end + ((length - 1) & 63) - 63
    first = (w[0] + ((length - 1) & 63)) & _MASK
    v = ((v[0] + first) & _MASK, v[1])
    w = ((first + v[0]) & _MASK, w[1])
    x = (_rotate(x + y + v[0] + _word(data, at + 8), 37) * factor) & _MASK
    y = (_rotate(y + v[1] + _word(data, at + 48), 42) * factor) & _MASK
    x ^= (w[1] * 9) & _MASK
    y = (y + v[0] * 9 + _word(data, at + 40)) & _MASK
    z = (_rotate(z + w[0], 33) * factor) & _MASK
    v = _weak(data, at, v[1] * factor, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
    z, x = x, z
    return _mix(
        (_mix(v[0], w[0], factor) + _shift_mix(y) * _K0 + z) & _MASK, (_mix(v[1], w[1], factor) + x) & _MASK, factor
    )


def fingerprint_of_key(key: int | None) -> int:
    """The number with which combining starts."""
    return DEFAULT_KEY if key is None else key & _MASK


def combined_fingerprint(first: int, second: int) -> int:
    """The fingerprint of two in order."""
    result = first ^ _MURMUR
    result ^= (_shift_mix(second * _MURMUR) * _MURMUR) & _MASK
    result = (result * _MURMUR) & _MASK
    result = (_shift_mix(result) * _MURMUR) & _MASK
    return _shift_mix(result)


def murmur64(data: bytes, seed: int = DEFAULT_KEY) -> int:
    """Murmur's 64-bit hash.

    >>> murmur64(b"") == murmur64(b"")
    True
    """
    value = (seed ^ (len(data) * _MURMUR)) & _MASK
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        k = (_word(data, at) * _MURMUR) & _MASK
        k = (_shift_mix(k) * _MURMUR) & _MASK
        value = ((value ^ k) * _MURMUR) & _MASK
    if len(data) > whole:
        value = ((value ^ int.from_bytes(data[whole:], "little")) * _MURMUR) & _MASK
    value = (_shift_mix(value) * _MURMUR) & _MASK
    return _shift_mix(value)


def siphash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 with a key of two 64-bit numbers."""
    k0, k1 = key[0] & _MASK, key[1] & _MASK
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & _MASK
            v[1] = _rotate(v[1], 51) ^ v[0]
            v[0] = _rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & _MASK
            v[3] = _rotate(v[3], 48) ^ v[2]
            v[0] = (v[0] + v[3]) & _MASK
            v[3] = _rotate(v[3], 43) ^ v[0]
            v[2] = (v[2] + v[1]) & _MASK
            v[1] = _rotate(v[1], 47) ^ v[2]
            v[2] = _rotate(v[2], 32)

    whole = len(data) // 8 * 8
    words = [_word(data, at) for at in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | ((len(data) & 0xFF) << 56))
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
