"""`tf.einsum`: sums of products written as equations, by transposes and batched matrix products.

An equation is parsed once for each combination of shapes. Its plan is a list of pairwise contractions, in an order that
keeps the work small; each one brings both operands to (batch, rows, inner) and (batch, inner, columns).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.errors import InvalidArgumentError

# Labels of one operand, one for each dimension; the dimensions of "..." are numbered from the right.
Labels = tuple[str | int, ...]
Sizes = dict[str | int, int | None]
Move = Callable[[Any], Any]
Step = Callable[[list[Any]], None]

_EQUATION = re.compile(r"^[a-zA-Z,.]*(->[a-zA-Z.]*)?$")
_EXHAUSTIVE_LIMIT = 5  # operands up to which every order is tried


@public("einsum", "linalg.einsum", "compat.v1.einsum")
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Any:
    """The sum of products that `equation` describes: repeated labels are multiplied, missing ones summed.

    Args:
        equation: Subscripts as in `'ij,jk->ik'`; `...` stands for further dimensions.
        inputs: The tensors.
        kwargs: `optimize`: how to find the order of the products, and `name`.

    Returns:
        A tensor.

    Gradient:
        An einsum of `dy` and the other inputs, for each input.

    >>> tf.einsum("ij,jk->ik", [[1., 2.]], [[3.], [4.]])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[11.]], dtype=float32)>
    """
    if kwargs:
        wrong = [key for key in kwargs if key not in ("name", "optimize", "greedy")]
        if wrong:
            raise TypeError(
                f"Invalid keyword arguments for einsum: {', '.join(wrong)}. Valid arguments: name, optimize, greedy."
            )
    tensors = list(inputs)
    for x in inputs:
        if type(x) is not _core.Tensor:
            hint = next((x.dtype for x in inputs if hasattr(x, "dtype")), None)
            tensors = [convert_to_tensor(x, None, hint) for x in inputs]
            break
    plan = _plan(equation, tuple([tuple(x.shape.as_list()) for x in tensors]))
    if len(tensors) > 1:
        dtype = tensors[0].dtype
        for i, x in enumerate(tensors):
            if x.dtype != dtype:
                raise InvalidArgumentError.of(
                    f"einsum: cannot compute Einsum as input #{i}(zero-based) was expected to be a {dtype.name} tensor "
                    f"but is a {x.dtype.name} tensor",
                )
    for step in plan:
        step(tensors)
    return tensors[-1]


@lru_cache(maxsize=2048)
def _plan(equation: str, shapes: tuple[tuple[int | None, ...], ...]) -> list[Step]:
    """Steps that work on the list of operands until one tensor, the result, is left."""
    operands, output = _parse(equation, shapes)
    sizes = _sizes(operands, shapes, equation)
    steps: list[Step] = []
    current: list[Labels] = []
    for i, (labels, shape) in enumerate(zip(operands, shapes)):
        moves, labels = _prepare(labels, shape, sizes)
        steps.extend(_unary(i, move) for move in moves)
        current.append(labels)
    for i, j in _best_order(current, output, sizes)[1]:
        left, right = current[i], current[j]
        current = [labels for k, labels in enumerate(current) if k not in (i, j)]
        needed = set(output).union(*current)
        step, result = _contract(left, right, needed, output if not current else None, sizes)
        steps.append(_binary(i, j, step))
        current.append(result)
    steps.extend(_unary(0, move) for move in _finish(current[0], output))
    return steps


def _unary(i: int, move: Callable[[Any], Any]) -> Step:
    def run(tensors: list[Any]) -> None:
        tensors[i] = move(tensors[i])

    return run


def _binary(i: int, j: int, contract: Callable[[Any, Any], Any]) -> Step:
    def run(tensors: list[Any]) -> None:
        right = tensors.pop(j)
        left = tensors.pop(i)
        tensors.append(contract(left, right))

    return run


# ---- the equation


def _parse(equation: str, shapes: tuple[tuple[int | None, ...], ...]) -> tuple[list[Labels], Labels]:
    if not isinstance(equation, str):
        raise TypeError(f"einsum: the equation must be a string; got {equation!r}")
    text = equation.replace(" ", "")
    if not _EQUATION.match(text) or "." in text.replace("...", ""):
        raise ValueError(f"Subscripts have incorrect format: {equation}")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f'Got {len(shapes)} inputs for equation "{equation}", expecting {len(terms)}')
    for term in (*terms, right):
        if term.count("...") > 1:
            raise ValueError(f"einsum: only one ellipsis may stand in each term; got {equation}")
    operands = [_label(i, term, shape) for i, (term, shape) in enumerate(zip(terms, shapes))]
    hidden = max((sum(isinstance(label, int) for label in labels) for labels in operands), default=0)
    ellipsis = tuple(range(hidden, 0, -1))
    if not arrow:
        counts = Counter(left.replace(",", "").replace(".", ""))
        once = sorted(label for label, count in counts.items() if count == 1)
        return operands, (*ellipsis, *once)
    before, dots, after = right.partition("...")
    labels = before + after
    for label in labels:
        if label not in left:
            raise ValueError(f"Output subscripts contain the label {label} not present in the input subscripts.")
        if labels.count(label) > 1:
            raise ValueError(f"Output subscripts contain a label appearing more than once: {equation}")
    if hidden and not dots:
        raise InvalidArgumentError.of(
            f"einsum: Output contains {hidden} broadcasting dimension(s) but no ellipsis (...) was found in the output "
            f"subscripts of {equation}",
        )
    return operands, (*before, *ellipsis, *after) if dots else tuple(labels)


def _label(position: int, term: str, shape: tuple[int | None, ...]) -> Labels:
    before, dots, after = term.partition("...")
    named = len(before) + len(after)
    at_least = "at least " if dots else ""
    if len(shape) < named or (not dots and len(shape) != named):
        raise InvalidArgumentError.of(
            f"einsum: Expected input {position} to have rank {at_least}{named} but got: {len(shape)}",
        )
    return (*before, *range(len(shape) - named, 0, -1), *after)


def _sizes(operands: list[Labels], shapes: tuple[tuple[int | None, ...], ...], equation: str) -> Sizes:
    """The size of each label; dimensions of "..." may be 1 in some operands."""
    sizes: Sizes = {}
    for labels, shape in zip(operands, shapes):
        for axis, (label, size) in enumerate(zip(labels, shape)):
            known = sizes.get(label)
            if known is None or (isinstance(label, int) and known == 1):
                sizes[label] = size
            elif size is not None and size != known and not (isinstance(label, int) and size == 1):
                raise InvalidArgumentError.of(
                    f"einsum: Expected dimension {known} at axis {axis} of the input shaped "
                    f"[{','.join(map(str, shape))}] but got dimension {size} (equation {equation})",
                )
    return sizes


# ---- one operand


def _prepare(labels: Labels, shape: tuple[int | None, ...], sizes: Sizes) -> tuple[list[Move], Labels]:
    """Takes the diagonals of repeated labels and drops broadcast dimensions of size 1; says what labels are left."""
    moves: list[Move] = []
    dims = list(shape)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            order = [d for d in range(len(labels)) if d not in (first, second)] + [first, second]
            if order != sorted(order):
                moves.append(_transpose(order))
            moves.append(lambda x: primitives.MatrixDiagPartV3(x, 0, 0))
            labels = tuple(labels[d] for d in order[:-1])
            dims = [dims[d] for d in order[:-1]]
    narrow = [d for d, label in enumerate(labels) if isinstance(label, int) and dims[d] == 1 and sizes[label] != 1]
    if narrow:
        moves.append(lambda x: primitives.Squeeze(x, narrow))
        labels = tuple(label for d, label in enumerate(labels) if d not in narrow)
    return moves, labels


def _finish(labels: Labels, output: Labels) -> list[Move]:
    """Sums what the output does not name and puts the rest in its order."""
    moves: list[Move] = []
    summed = [d for d, label in enumerate(labels) if label not in output]
    if summed:
        moves.append(_sum(summed))
        labels = tuple(label for label in labels if label in output)
    if labels != output:
        moves.append(_transpose([labels.index(label) for label in output]))
    return moves


def _transpose(order: list[int]) -> Move:
    return lambda x: primitives.Transpose(x, order)


def _sum(axes: list[int]) -> Move:
    return lambda x: primitives.Sum(x, axes)


def _reshape(dims: list[int]) -> Move:
    return lambda x: primitives.Reshape(x, dims)


def _compose(moves: list[Move]) -> Move:
    def run(x: Any) -> Any:
        for move in moves:
            x = move(x)
        return x

    return run


# ---- two operands


def _best_order(current: list[Labels], output: Labels, sizes: Sizes) -> tuple[int, list[tuple[int, int]]]:
    """The work of contracting all operands and the pairs to contract, each counted in the list of that moment."""
    if len(current) < 2:
        return 0, []
    pairs = [(i, j) for i in range(len(current)) for j in range(i + 1, len(current))]
    if len(current) > _EXHAUSTIVE_LIMIT:
        pairs = [min(pairs, key=lambda pair: _work(current[pair[0]] + current[pair[1]], sizes))]
    best: tuple[int, list[tuple[int, int]]] | None = None
    for i, j in pairs:
        rest = [labels for k, labels in enumerate(current) if k not in (i, j)]
        needed = set(output).union(*rest)
        result = tuple(label for label in dict.fromkeys(current[i] + current[j]) if label in needed)
        work, later = _best_order([*rest, result], output, sizes)
        work += _work(current[i] + current[j], sizes)
        if best is None or work < best[0]:
            best = work, [(i, j), *later]
    assert best is not None
    return best


def _work(labels: Labels, sizes: Sizes) -> int:
    return prod(sizes[label] or 1 for label in set(labels))


def _contract(
    left: Labels, right: Labels, needed: set[Any], output: Labels | None, sizes: Sizes
) -> tuple[Callable[[Any, Any], Any], Labels]:
    """The product of two operands summed over what is not needed any more, and the labels of the result."""
    left_moves, left = _drop_unneeded(left, right, needed)
    right_moves, right = _drop_unneeded(right, left, needed)
    place = {label: i for i, label in enumerate(output if output is not None else left + right)}
    batch = sorted((label for label in left if label in right and label in needed), key=place.__getitem__)
    rows = sorted((label for label in left if label not in right), key=place.__getitem__)
    columns = sorted((label for label in right if label not in left), key=place.__getitem__)
    inner = [label for label in left if label in right and label not in needed]
    if rows and columns and place[rows[-1]] > place[columns[-1]]:
        step, result = _contract(right, left, needed, output, sizes)
        first, second = _compose(left_moves), _compose(right_moves)
        return lambda x, y: step(second(y), first(x)), result
    if not inner or (batch and not rows and not columns):
        return _multiply(left, right, [*batch, *rows, *columns], inner, left_moves, right_moves, sizes)
    if [label for label in right if label in inner] != inner and _matches(right, batch, columns, inner):
        inner = [label for label in right if label in inner]
    transpose_a = _arrange(left, batch, rows, inner, left_moves, sizes)
    transpose_b = not _arrange(right, batch, columns, inner, right_moves, sizes)
    prepare_left, prepare_right = _compose(left_moves), _compose(right_moves)
    result = (*batch, *rows, *columns)
    shape = None
    if (len(batch), len(rows), len(columns)) not in ((0, 1, 1), (1, 1, 1)):
        shape = _dims([[label] for label in result], sizes)

    def run(x: Any, y: Any) -> Tensor:
        product = primitives.MatMul(prepare_left(x), prepare_right(y), transpose_a, transpose_b)
        return product if shape is None else primitives.Reshape(product, shape)

    return run, result


def _drop_unneeded(labels: Labels, other: Labels, needed: set[Any]) -> tuple[list[Move], Labels]:
    summed = [d for d, label in enumerate(labels) if label not in other and label not in needed]
    if not summed:
        return [], labels
    return [_sum(summed)], tuple(label for d, label in enumerate(labels) if d not in summed)


def _matches(labels: Labels, batch: list[Any], free: list[Any], inner: list[Any]) -> bool:
    """Whether the operand would need no transpose with its own order of the inner labels."""
    own = [label for label in labels if label in inner]
    return list(labels) in ([*batch, *free, *own], [*batch, *own, *free])


def _arrange(
    labels: Labels, batch: list[Any], free: list[Any], inner: list[Any], moves: list[Move], sizes: Sizes
) -> bool:
    """Brings an operand to (batch, free, inner) or (batch, inner, free); says whether it is the latter."""
    inner_first = list(labels) == [*batch, *inner, *free] or (
        list(labels) != [*batch, *free, *inner] and labels[-1] not in inner
    )
    groups = [inner, free] if inner_first else [free, inner]
    wanted = [*batch, *groups[0], *groups[1]]
    if list(labels) != wanted:
        moves.append(_transpose([labels.index(label) for label in wanted]))
    if batch:
        groups = [batch, *groups]
    if any(len(group) != 1 for group in groups):
        moves.append(_reshape(_dims(groups, sizes)))
    return inner_first


def _multiply(
    left: Labels,
    right: Labels,
    kept: list[Any],
    inner: list[Any],
    left_moves: list[Move],
    right_moves: list[Move],
    sizes: Sizes,
) -> tuple[Callable[[Any, Any], Any], Labels]:
    """The product by broadcasting, where there is nothing for a matrix product to do."""
    wanted = [*kept, *inner]
    for labels, moves in ((left, left_moves), (right, right_moves)):
        own = [label for label in wanted if label in labels]
        if list(labels) != own:
            moves.append(_transpose([labels.index(label) for label in own]))
        leading = wanted.index(own[0]) if own else 0
        if own and own != wanted[leading:]:
            moves.append(_reshape(_dims([[label] if label in labels else [] for label in wanted[leading:]], sizes)))
    first, second = _compose(left_moves), _compose(right_moves)
    if inner:
        axes = list(range(len(kept), len(wanted)))
        return lambda x, y: primitives.Sum(first(x) * second(y), axes), tuple(kept)
    return lambda x, y: first(x) * second(y), tuple(kept)


def _dims(groups: list[list[Any]], sizes: Sizes) -> list[int]:
    """The size of each group of labels; one unknown size is -1."""
    known = [[sizes[label] for label in group] for group in groups]
    dims = [-1 if None in group else prod(size for size in group if size is not None) for group in known]
    if dims.count(-1) > 1:
        raise ValueError(
            "einsum: at most one group of dimensions may have an unknown size; give the operands a static shape"
        )
    return dims
