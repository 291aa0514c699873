"""Parts of variables: assignments to one, `v[key].assign(value)`, and variables that are a part of a larger one."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.io.protos import messages


class SliceAssignment:
    """`v[key].assign(value)`: writes into a part of a variable."""

    __slots__ = ("_key", "_variable")

    def __init__(self, variable: Any, key: Any) -> None:
        self._variable, self._key = variable, key

    def __call__(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        variable = self._variable
        if not _core.is_tracing():
            return variable._assign_slice(self._key, value)
        parts, are_slices = _key_parts(self._key)
        return variable._update_later(assign_slice, parts, are_slices, value)


def assign_slice(variable: Any, parts: list[Any], are_slices: list[bool], value: Any) -> None:
    """Writes into the part of a variable that an index expression names; see `key_from`."""
    variable._assign_slice(key_from(parts, are_slices), value)


def _key_parts(key: Any) -> tuple[list[Any], list[Any]]:
    """The numbers and tensors of an index expression, and for each part of it whether it was a slice."""
    items = list(key) if isinstance(key, tuple) else [key]
    parts: list[Any] = []
    for item in items:
        parts += [item.start, item.stop, item.step] if isinstance(item, slice) else [item]
    return parts, [isinstance(item, slice) for item in items]


def key_from(parts: list[Any], are_slices: list[bool]) -> tuple[Any, ...]:
    """The index expression of these numbers and tensors."""
    rest = iter(parts)
    return tuple([slice(next(rest), next(rest), next(rest)) if is_slice else next(rest) for is_slice in are_slices])


class SaveSliceInfo:
    """Which part of a larger variable a variable is: savers write it under the name of the whole.

    >>> info = tf.Variable.SaveSliceInfo("w", full_shape=[4, 3], var_offset=[2, 0], var_shape=[2, 3])
    >>> info.spec
    '4 3 2,2:0,3'
    """

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Any = None,
        var_offset: Any = None,
        var_shape: Any = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        self.full_name, self.full_shape = full_name, full_shape
        self.var_offset, self.var_shape = var_offset, var_shape
        if save_slice_info_def:
            name = save_slice_info_def.full_name
            self.full_name = f"{import_scope}/{name}" if import_scope else name
            self.full_shape = list(save_slice_info_def.full_shape)
            self.var_offset = list(save_slice_info_def.var_offset)
            self.var_shape = list(save_slice_info_def.var_shape)

    @property
    def spec(self) -> str:
        """The shape of the whole, and for each axis where the part begins and how long it is."""
        extents = ":".join(f"{start},{size}" for start, size in zip(self.var_offset, self.var_shape))
        return "".join(f"{size} " for size in self.full_shape) + extents

    @classmethod
    def from_spec(cls, spec: str) -> SaveSliceInfo:
        """What a `spec` says; it has no name."""
        if not spec:
            return cls()
        sizes, blank, extents = spec.rpartition(" ")
        if not blank:
            raise ValueError(f"Spec string must contain space-separated full_shape info; got {spec!r}")
        shape = [_whole_number(size, "full_shape must be a sequence of integers") for size in sizes.split()]
        offsets, lengths = [], []
        for extent in extents.split(":"):
            pair = extent.split(",")
            if len(pair) != 2:
                raise ValueError(
                    f"Spec string must contain comma-separated pairs of offsets and shapes; got {extent!r}"
                )
            offsets.append(_whole_number(pair[0], "var_offset must be an integer"))
            lengths.append(_whole_number(pair[1], "var_shape must be an integer"))
        return cls(full_shape=shape, var_offset=offsets, var_shape=lengths)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The message that stands for it, its name without `export_scope`; None if it is not within that."""
        name = str(self.full_name)
        if export_scope and not name.startswith(export_scope):
            return None
        return messages.SaveSliceInfoDef(
            full_name=name.removeprefix(f"{export_scope}/") if export_scope else name,
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )


def _whole_number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Spec string {what}; got {text!r}") from None
