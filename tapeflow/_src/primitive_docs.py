"""The docs of primitives: an entry describes what is special, the rest follows from its parameters and its family."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_NAME = "A name for the operation in graphs."
_AXIS = "The axes to reduce; all of them if None. Negative axes count from the end."
_TEXT_BY_ARGUMENT = {
    "reduction": {
        "input_tensor": "The tensor to reduce",
        "axis": _AXIS,
        "keepdims": "Whether reduced axes stay in the shape, with size 1.",
    },
    "unary": {},
    "binary": {},
}
_RETURNS = {
    "unary": "A tensor of the shape of `{0}`.",
    "binary": "A tensor of the shape to which `{0}` and `{1}` broadcast.",
    "reduction": "A tensor without the axes `axis`, or with size 1 there if `keepdims`.",
    "movement": "A tensor with the elements of `{0}`.",
    "": "A tensor.",
}
_FLOAT8 = {f"float8_{kind}" for kind in ("e5m2", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2fnuz")}
_DTYPE_SETS = (
    ("floating", {"float16", "bfloat16", "float32", "float64"}),
    ("float8", _FLOAT8),
    ("complex", {"complex64", "complex128"}),
    ("integer", {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}),
    ("quantized", {"qint8", "quint8", "qint16", "quint16", "qint32"}),
)
_DTYPES = {name for _, names in _DTYPE_SETS for name in names} | {"bool", "string"}
_TEXT_BY_KIND = {
    "tensors": "A list of tensors",
    "flag": "A bool.",
    "integer": "An integer.",
    "real": "A number.",
    "dtype": "A dtype, or None for the one that follows from the tensors.",
    "axes": "An axis or a list of axes; negative axes count from the end.",
    "ints": "A list of integers, or an integer tensor.",
    "text": "A str.",
}


def complete(doc: str, signature: str, facts: Mapping[str, Any]) -> str:
    """`doc` with a section for every argument, the result and the gradient, before its example."""
    if not doc:
        return doc
    text, _, example = doc.partition("\n>>>")
    names = [argument.strip().partition("=")[0] for argument in re.split(r",(?![^(]*\))", signature[1:-1])]
    names = [name for name in names if name not in ("*", "name")]
    described = _described(text)
    before = re.split(r"^(?:Args|Returns|Gradient):", text, maxsplit=1, flags=re.MULTILINE)[0].strip()
    lines = [f"  {name}: {described.get(name) or written}" for name, written in _arguments(names, facts)]
    result = described.get("Returns") or _RETURNS[facts["family"]].format(*names, "")
    gradient = described.get("Gradient") or _gradient(facts)
    sections = [before, "\n".join(["Args:", *lines, f"  name: {_NAME}"]), f"Returns:\n  {result}"]
    sections.append(f"Gradient:\n  {gradient}")
    return "\n\n".join(sections) + (f"\n\n>>>{example}" if example else "")


def _described(text: str) -> dict[str, str]:
    """What the entry says itself, by argument, `Returns` and `Gradient`."""
    found = dict(re.findall(r"^  (\w+): (.+)$", text, re.MULTILINE))
    return {**found, **dict(re.findall(r"^(Returns|Gradient): (.+)$", text, re.MULTILINE))}


def _arguments(names: Sequence[str], facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    dtypes = iter(facts["dtypes"])
    shared = _TEXT_BY_ARGUMENT.get(facts["family"], {})
    rows = []
    for name, kind in zip(names, facts["kinds"]):
        text = shared.get(name) or _TEXT_BY_KIND.get(kind, "A tensor")
        if kind in ("tensor", "tensors"):
            text += f", {_dtype_words(next(dtypes))}."
        rows.append((name, text))
    return rows


def _dtype_words(names: Sequence[str]) -> str:
    """The dtypes in few words: "floating or complex"."""
    rest, words = set(names), []
    if rest >= _DTYPES:
        return "of any dtype"
    for word, members in _DTYPE_SETS:
        if rest >= members:
            words.append(word)
            rest -= members
    words += sorted(rest)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _gradient(facts: Mapping[str, Any]) -> str:
    return "None." if facts["gradient"] == "none" else "As the definition gives it, of any order."
