"""Loops and conditions of TensorFlow 1 (`Enter`, `Merge`, `Switch`, `NextIteration`, `Exit`) as `While` and `If`.

A frame is a loop: its `Merge` nodes are the loop variables, `LoopCond` holds the condition, what `Switch` lets through
is the body, `NextIteration` ends it, and `Exit` gives the results. A `Merge` outside of frames is the result of a
condition, and the `Switch` nodes before it begin its branches. Inner ones are replaced first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tapeflow._src.compat.graph_def.attributes import python_value
from tapeflow._src.compat.graph_def.op_defs import OpDef, find_op_def
from tapeflow._src.io.protos import messages
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError

_STRUCTURE = frozenset(("Enter", "Exit", "Merge", "Switch", "NextIteration", "LoopCond"))
_OF_SAVERS = frozenset(
    ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename", "SaveSlices", "Save", "Restore")
)
_ALIAS = {f"Ref{name}": name for name in ("Enter", "Exit", "Merge", "Switch", "NextIteration")}


def has_frames(nodes: Iterable[Any]) -> bool:
    """Whether a loop or condition of TensorFlow 1 is among these nodes."""
    return any(node.op in _STRUCTURE or node.op in _ALIAS for node in nodes)


def without_frames(graph_def: Any, prefix: str = "") -> Any:
    """The same graph with loops and conditions as functions; the graph itself if it has none.

    The names of the functions begin with `prefix`.
    """
    if not has_frames(graph_def.node):
        return graph_def
    copy = messages.GraphDef()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        node.op = _ALIAS.get(node.op, node.op)
    return _Rewriter(copy, prefix).run()


def function_without_frames(function: Any, place_of: Callable[[str], tuple[str, int]]) -> list[Any]:
    """The same function with loops and conditions as functions; these follow it.

    `place_of` gives the node and the number of the output that "node:output:0" means in it.
    """
    graph = messages.GraphDef()
    for arg in function.signature.input_arg:
        graph.node.add(name=arg.name, op="Placeholder").attr["dtype"].type = arg.type
    for node in function.node_def:
        copy = graph.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(x if x.startswith("^") else _text(place_of(x)) for x in node.input)
    output_by_name = {name: place_of(text) for name, text in function.ret.items()}
    roots = [*(place[0] for place in output_by_name.values()), *function.control_ret.values()]
    plain = without_frames(needed_nodes(graph, roots), f"{function.signature.name}_")
    made = messages.FunctionDef()
    made.CopyFrom(function)
    del made.node_def[:]
    made.node_def.extend(node for node in plain.node if node.op != "Placeholder")
    for name, place in output_by_name.items():
        made.ret[name] = _text(place)
    return [made, *plain.library.function]


def without_savers(graph_def: Any, savers: Iterable[str] = ()) -> Any:
    """The nodes that do not save or restore, as those named `savers` do, nor wait for nodes that do."""
    left_out: set[str] = {*savers, *(node.name for node in graph_def.node if node.op in _OF_SAVERS)}
    size = -1
    while size != len(left_out):
        size = len(left_out)
        for node in graph_def.node:
            if any(text.lstrip("^").partition(":")[0] in left_out for text in node.input):
                left_out.add(node.name)
    kept = [node for node in graph_def.node if node.name not in left_out]
    return messages.GraphDef(node=kept, library=graph_def.library, versions=graph_def.versions)


def needed_nodes(graph_def: Any, roots: Iterable[str]) -> Any:
    """The graph with those nodes only that these need."""
    node_by_name = {node.name: node for node in graph_def.node}
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in node_by_name:
            continue
        found.add(name)
        waiting += [_place(text.lstrip("^"))[0] for text in node_by_name[name].input]
    kept = [node for node in graph_def.node if node.name in found]
    return messages.GraphDef(node=kept, library=graph_def.library, versions=graph_def.versions)


def _place(text: str) -> tuple[str, int]:
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and number.isdigit() else (text, 0)


def _text(place: tuple[str, int]) -> str:
    return place[0] if place[1] == 0 else f"{place[0]}:{place[1]}"


def _output_dtypes(node: Any, definition: OpDef) -> list[int]:
    """The dtypes of the outputs of a node, as numbers."""
    given = {name: python_value(value) for name, value in node.attr.items() if name != "value"}
    attributes, found = definition.complete(given), []
    for output in definition.outputs:
        kind = attributes[output.kind] if output.kind in definition.attributes else output.kind
        kinds = kind if output.types else [kind] * output.size(attributes)
        found += [int(as_dtype(each).as_datatype_enum) for each in kinds]
    return found


class _Rewriter:
    def __init__(self, graph_def: Any, prefix: str) -> None:
        self._graph, self._prefix = graph_def, prefix
        self._node_by_name: dict[str, Any] = {node.name: node for node in graph_def.node}
        self._count = 0

    def run(self) -> Any:
        while True:
            merges = [n for n in self._node_by_name.values() if n.op == "Merge" and not self._is_loop_merge(n)]
            if not merges:
                break
            self._replace_condition(next((m for m in merges if not self._merges_before(m)), merges[0]))
        while True:
            frames = self._frames()
            if not frames:
                break
            # An inner frame holds no entrance to another one.
            inner = next((f for f in frames.values() if not self._holds_frames(f)), None)
            if inner is None:
                raise InvalidArgumentError.of("import_graph_def: the loops of the graph hold each other")
            self._replace_loop(inner)
        kept = [node for node in self._node_by_name.values() if node.op not in _STRUCTURE]
        for node in self._node_by_name.values():
            if node.op == "Switch":  # of a condition whose results nobody merges: both ways lead on
                kept.append(self._identities(node))
        del self._graph.node[:]
        self._graph.node.extend(kept)
        return self._graph

    @staticmethod
    def _identities(node: Any) -> Any:
        made = messages.NodeDef(name=node.name, op="IdentityN", input=[node.input[0]] * 2)
        made.attr["T"].list.type.extend([node.attr["T"].type] * 2)
        return made

    def _needs(self, node: Any) -> list[tuple[str, int]]:
        return [_place(text) for text in node.input if not text.startswith("^")]

    def _is_loop_merge(self, node: Any) -> bool:
        return any(self._node_by_name[p[0]].op == "Enter" for p in self._needs(node) if p[0] in self._node_by_name)

    def _is_loop_switch(self, node: Any) -> bool:
        source = self._node_by_name.get(self._needs(node)[0][0])
        return source is not None and source.op == "Merge" and self._is_loop_merge(source)

    def _borders(self) -> set[str]:
        """The nodes at which the branches of a condition end: switches, and what belongs to loops."""
        nodes = self._node_by_name.values()
        return {n.name for n in nodes if n.op in ("Switch", "Enter", "Exit", "LoopCond", "NextIteration")} | {
            n.name for n in nodes if n.op == "Merge" and self._is_loop_merge(n)
        }

    # ---- loops

    def _frames(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for node in self._node_by_name.values():
            if node.op == "Enter":
                found.setdefault(node.attr["frame_name"].s.decode(errors="replace"), []).append(node)
        return found

    def _parts(self, enters: list[Any]) -> tuple[list[Any], Any, list[Any], list[Any], list[Any]]:
        """Merge nodes, condition, Switch nodes, ends of the body, and constant entrances of a frame."""
        names = {node.name for node in enters}
        nodes = list(self._node_by_name.values())
        merges = [n for n in nodes if n.op == "Merge" and any(p[0] in names for p in self._needs(n))]
        merged = {node.name for node in merges}
        switches = {self._needs(n)[0][0]: n for n in nodes if n.op == "Switch" and self._needs(n)[0][0] in merged}
        ends = []
        for merge in merges:
            sources = [self._node_by_name[p[0]] for p in self._needs(merge)]
            ends.append(next((n for n in sources if n.op == "NextIteration"), None))
        if not merges or None in ends or len(switches) != len(merges):
            raise InvalidArgumentError.of(f"import_graph_def: the loop at '{enters[0].name}' is not whole")
        ordered = [switches[m.name] for m in merges]
        condition = self._node_by_name[self._needs(ordered[0])[1][0]]
        entered = {p[0] for m in merges for p in self._needs(m)}
        constants = [n for n in enters if n.name not in entered]
        return merges, condition, ordered, ends, constants

    def _holds_frames(self, enters: list[Any]) -> bool:
        _, condition, switches, ends, constants = self._parts(enters)
        stops = {n.name for n in (*switches, *constants)} | {n.name for n in enters}
        slice_ = self._slice([self._needs(n)[0] for n in (*ends, condition)], stops)
        return any(self._node_by_name[name].op in ("Enter", "Exit") for name in slice_)

    def _slice(self, wanted: list[tuple[str, int]], stops: Iterable[str]) -> list[str]:
        """The nodes that these places need, from the last back to nodes at which to stop."""
        found: dict[str, None] = {}
        waiting, stopping = [name for name, _ in wanted], set(stops)
        while waiting:
            name = waiting.pop()
            if name in found or name in stopping:
                continue
            node = self._node_by_name.get(name)
            if node is None:
                raise InvalidArgumentError.of(f"import_graph_def: Unknown input node '{name}'")
            found[name] = None
            waiting += [p[0] for p in self._needs(node)]
        return list(found)

    def _replace_loop(self, enters: list[Any]) -> None:
        merges, condition, switches, ends, constants = self._parts(enters)
        enter_by_name = {node.name: node for node in enters}
        first = [next(enter_by_name[p[0]] for p in self._needs(m) if p[0] in enter_by_name) for m in merges]
        entrances = [*first, *constants]
        dtypes = [node.attr["T"].type for node in entrances]
        names = [f"arg_{i}" for i in range(len(entrances))]
        given = {(m.name, 0): names[i] for i, m in enumerate(merges)}
        given |= {(s.name, 1): names[i] for i, s in enumerate(switches)}
        given |= {(c.name, 0): names[len(merges) + i] for i, c in enumerate(constants)}
        cond = self._function("while_cond", names, dtypes, given, [self._needs(condition)[0]], [as_dtype("bool")])
        results = [self._needs(n)[0] for n in ends]
        kept = [(c.name, 0) for c in constants]
        body = self._function("while_body", names, dtypes, given, [*results, *kept], [as_dtype(t) for t in dtypes])
        self._count += 1
        loop = messages.NodeDef(name=self._unused(f"{enters[0].name}_while"), op="While")
        loop.input.extend(_text(self._needs(node)[0]) for node in entrances)
        loop.attr["T"].list.type.extend(dtypes)
        loop.attr["cond"].func.name, loop.attr["body"].func.name = cond, body
        for _ in dtypes:
            loop.attr["output_shapes"].list.shape.add(unknown_rank=True)
        for i, switch in enumerate(switches):
            for node in list(self._node_by_name.values()):
                if node.op == "Exit" and self._needs(node)[0] == (switch.name, 0):
                    exit_ = messages.NodeDef(name=node.name, op="Identity", input=[_text((loop.name, i))])
                    exit_.attr["T"].type = dtypes[i]
                    self._node_by_name[node.name] = exit_
        inside = self._slice([*results, self._needs(condition)[0]], [n.name for n in (*enters, *merges, *switches)])
        gone = [*inside, condition.name, *(n.name for n in (*enters, *merges, *switches, *ends))]
        self._node_by_name[loop.name] = loop
        self._drop(gone)

    def _drop(self, names: Iterable[str]) -> None:
        """Takes nodes away that nobody outside needs any more."""
        gone = set(names)
        needed = [p[0] for n in self._node_by_name.values() if n.name not in gone for p in self._needs(n)]
        waiting = [name for name in needed if name in gone]
        while waiting:
            name = waiting.pop()
            if name in gone and self._node_by_name[name].op not in _STRUCTURE:
                gone.discard(name)
                waiting += [p[0] for p in self._needs(self._node_by_name[name])]
        while gone:
            for name in gone:
                self._node_by_name.pop(name, None)
            # What takes their values serves nothing but the order of the loop or condition.
            gone = {n.name for n in self._node_by_name.values() if any(p[0] in gone for p in self._needs(n))}
        for node in self._node_by_name.values():
            kept = [t for t in node.input if not t.startswith("^") or t[1:] in self._node_by_name]
            if len(kept) != len(node.input):
                del node.input[:]
                node.input.extend(kept)

    # ---- conditions

    def _switches_before(self, places: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """The Switch outputs from which these places come, also through control inputs."""
        found: list[tuple[str, int]] = []
        seen: set[tuple[str, int]] = set()
        borders, waiting = self._borders(), list(places)
        while waiting:
            place = waiting.pop()
            node = self._node_by_name.get(place[0])
            if node is None or place in seen:
                continue
            seen.add(place)
            if node.op == "Switch":
                if not self._is_loop_switch(node):
                    found.append(place)
            elif place[0] not in borders:
                waiting += [_place(text.lstrip("^")) for text in node.input]
        return found

    def _merges_before(self, merge: Any) -> bool:
        inside = self._slice(self._needs(merge), self._borders())
        return any(self._node_by_name[name].op == "Merge" for name in inside)

    def _replace_condition(self, merge: Any) -> None:
        sides = self._needs(merge)
        if len(sides) != 2:
            raise InvalidArgumentError.of(f"import_graph_def: node '{merge.name}' (Merge) must have two inputs")
        by_side = [self._switches_before([side]) for side in sides]
        ways = [{way for _, way in found} for found in by_side]
        # A side whose switches all let the same way through is that branch; a constant side is the other one.
        true_side = next((i for i, way in enumerate(ways) if way == {1}), None)
        if true_side is None:
            false_side = next((i for i, way in enumerate(ways) if way == {0}), None)
            if false_side is None:
                raise InvalidArgumentError.of(f"import_graph_def: the condition at '{merge.name}' is not whole")
            true_side = 1 - false_side
        switches = list(dict.fromkeys(name for found in by_side for name, _ in found))
        predicate = self._predicate_of(self._node_by_name[switches[0]])
        borders = self._borders()
        used = [self._slice([side], borders) for side in sides]
        # What the branches take: from switches of this condition, and as it is from anywhere else.
        taken = [p for part in used for name in part for p in self._needs(self._node_by_name[name]) if p[0] in borders]
        taken = list(dict.fromkeys([*(side for side in sides if side[0] in borders), *taken]))
        own = {p: self._data_of(p, predicate) for p in taken}
        data = list(dict.fromkeys(own[p] or p for p in taken))
        names = [f"arg_{i}" for i in range(len(data))]
        dtypes = [self._dtype_of(place) for place in data]
        dtype = merge.attr["T"].type
        functions = []
        for way in (1, 0):
            side = sides[true_side] if way else sides[1 - true_side]
            given = {p: names[data.index(own[p] or p)] for p in taken}
            functions.append(self._function("cond", names, dtypes, given, [side], [as_dtype(dtype)]))
        made = messages.NodeDef(name=merge.name, op="If", input=[_text(predicate), *map(_text, data)])
        made.attr["Tcond"].type = as_dtype("bool").as_datatype_enum
        made.attr["Tin"].list.type.extend(dtypes)
        made.attr["Tout"].list.type.append(dtype)
        made.attr["then_branch"].func.name, made.attr["else_branch"].func.name = functions
        made.attr["output_shapes"].list.shape.add(unknown_rank=True)
        self._node_by_name[merge.name] = made
        self._drop([name for part in used for name in part])

    def _predicate_of(self, switch: Any) -> tuple[str, int]:
        place = self._needs(switch)[1]
        while self._node_by_name[place[0]].op == "Identity":
            place = self._needs(self._node_by_name[place[0]])[0]
        return place

    def _data_of(self, place: tuple[str, int], predicate: tuple[str, int]) -> tuple[str, int] | None:
        """What a Switch of this condition lets through."""
        node = self._node_by_name[place[0]]
        mine = node.op == "Switch" and self._predicate_of(node) == predicate
        return self._needs(node)[0] if mine else None

    def _dtype_of(self, place: tuple[str, int]) -> int:
        node = self._node_by_name[place[0]]
        definition = find_op_def(node.op)
        if definition is not None:
            kinds = _output_dtypes(node, definition)
        else:  # a call of a function
            called = (f.signature for f in self._graph.library.function if f.signature.name == node.op)
            kinds = [int(arg.type) for signature in called for arg in signature.output_arg]
        if place[1] >= len(kinds):
            raise InvalidArgumentError.of(f"import_graph_def: node '{place[0]}' has no output {place[1]}")
        return kinds[place[1]]

    # ---- functions

    def _unused(self, name: str) -> str:
        while name in self._node_by_name:
            name += "_"
        return name

    def _function(
        self, hint: str, names: list[str], dtypes: list[int], given: dict[tuple[str, int], str],
        outputs: list[tuple[str, int]], kinds: list[Any],
    ) -> str:  # fmt: skip
        """Adds a function of `names` to the library; `given` says which places are its inputs."""
        self._count += 1
        function = self._graph.library.function.add()
        function.signature.name = f"{self._prefix}{hint}_{self._count}_of_frames"
        for name, dtype in zip(names, dtypes):
            function.signature.input_arg.add(name=name, type=dtype)
        stops = {name for name, _ in given}
        inside = self._slice([place for place in outputs if place not in given], stops)

        def renamed(place: tuple[str, int]) -> str:
            return given.get(place) or f"{place[0]}:{place[1]}"

        for name in inside:
            node = self._node_by_name[name]
            if node.op in _STRUCTURE:
                raise InvalidArgumentError.of(f"import_graph_def: node '{name}' ({node.op}) has no loop or condition")
            copy = function.node_def.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(renamed(place) for place in self._needs(node))
        for i, (place, kind) in enumerate(zip(outputs, kinds)):
            function.signature.output_arg.add(name=f"out_{i}", type=kind.as_datatype_enum)
            function.ret[f"out_{i}"] = renamed(place)
        stateful = (find_op_def(self._node_by_name[name].op) for name in inside)
        function.signature.is_stateful = any(found is not None and found.stateful for found in stateful)
        return str(function.signature.name)
