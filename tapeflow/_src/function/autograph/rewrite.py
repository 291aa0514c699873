"""A function's syntax tree with its control flow handed to the run-time operators, under the name `ag__`.

The blocks of a branch or a loop become inner functions that share the variables of the function by `nonlocal`; beside
them stand a reader and a writer of the variables that the branch or loop must carry.
"""

from __future__ import annotations

import ast
from typing import Any

from tapeflow._src.function.autograph.jumps import RETURNED, JumpLowering, UnsupportedError, unless
from tapeflow._src.function.autograph.names import Facts, NameAnalysis

_COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_LOOP_OPTIONS = ("parallel_iterations", "swap_memory", "maximum_iterations", "shape_invariants")


def rewritten(node: ast.FunctionDef | ast.Lambda, has_class_cell: bool = False) -> ast.FunctionDef | ast.Lambda:
    """The converted definition, without its decorators and defaults, which the function object has already."""
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in _own_nodes(node)):
        raise UnsupportedError("generators are not supported")
    arguments = node.args
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    rewriter = Rewriter(arguments, has_class_cell)
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Lambda(arguments, rewriter.visit(node.body)), node)
    return rewriter.function(node, [])


def _own_nodes(node: ast.AST) -> Any:
    """The nodes below, without the insides of other functions and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_nodes(child)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _operator(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load("ag__"), name, ast.Load()), list(arguments), [])


def _placed(call: ast.Call, place: ast.expr) -> ast.Call:
    """The call of an operator where `place` stands: tracebacks name the line of what is called, so it is the first."""
    if not hasattr(place, "lineno"):  # made for a flag: it stands where its statement stands
        return call
    callee = call.func
    callee.lineno = callee.end_lineno = place.lineno
    callee.col_offset = callee.end_col_offset = place.col_offset
    return ast.copy_location(call, place)


def _at_head(node: ast.stmt, place: ast.stmt) -> ast.stmt:
    """A statement on the first line of the branch or loop from which it is made."""
    if not isinstance(place, ast.If | ast.While | ast.For):
        return ast.copy_location(node, place)
    head = place.iter if isinstance(place, ast.For) else place.test
    node.lineno = node.end_lineno = place.lineno
    node.col_offset = node.end_col_offset = place.col_offset
    if getattr(head, "end_lineno", None) == place.lineno:
        node.end_col_offset = head.end_col_offset
    return node


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments(), value)


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _definition(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    # 3.12 adds type parameters, which must be a list.
    extra: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    return ast.FunctionDef(name=name, args=arguments, body=body or [ast.Pass()], decorator_list=[], **extra)


def _binds_names(*nodes: ast.AST) -> bool:
    return any(isinstance(inner, ast.NamedExpr) for node in nodes for inner in ast.walk(node))


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; a function inside it gets a rewriter of its own."""

    def __init__(self, arguments: ast.arguments, has_class_cell: bool) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        self._first = positional[0].arg if positional else None
        self._parameters = {a.arg for a in (*positional, *arguments.kwonlyargs)}
        self._parameters |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        self._has_class_cell = has_class_cell
        self._count = 0
        self._globals: set[str] = set()
        self._outer: set[str] = set()
        self._shared: set[str] = set()  # names that generated inner functions bind
        self._own_names: set[str] = set(self._parameters)
        self._names = NameAnalysis([])
        self._flags: set[str] = set()

    # ---- functions

    def function(self, node: ast.FunctionDef, decorators: list[ast.expr]) -> ast.FunctionDef:
        """The definition with a rewritten body."""
        for inner in _own_nodes(node):
            if isinstance(inner, ast.Global):
                self._globals.update(inner.names)
            elif isinstance(inner, ast.Nonlocal):
                self._outer.update(inner.names)
        documentation = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        lowering = JumpLowering()
        body = lowering.function(node.body[len(documentation) :]) if node.body[len(documentation) :] else []
        self._flags = lowering.flags
        self._names = NameAnalysis(body)
        self._own_names |= {
            n for n in self._names.block(body).may_bind if n.isidentifier() and not n.startswith("ag__")
        }
        statements = self.block(body, frozenset(self._globals | self._outer))
        declarations = self._declarations(self._globals, self._outer)
        local = sorted(self._shared - self._parameters - self._globals - self._outer)
        if local:
            # Never runs: it makes the names variables of this function, unbound until something binds them.
            binding = ast.Assign([ast.Name(n, ast.Store()) for n in local], ast.Constant(None))
            declarations.append(ast.If(ast.Constant(0), [binding], []))
        new = _definition(node.name, node.args, [*documentation, *declarations, *statements])
        new.decorator_list = decorators
        new.returns = node.returns
        return ast.copy_location(new, node)

    @staticmethod
    def _declarations(globals_: set[str], outer: set[str]) -> list[ast.stmt]:
        declarations: list[ast.stmt] = []
        if globals_:
            declarations.append(ast.Global(sorted(globals_)))
        if outer:
            declarations.append(ast.Nonlocal(sorted(outer)))
        return declarations

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """An inner function: converted in place, unless it is a generator or asks not to be."""
        return self._inner_function(node, self._has_class_cell)

    def _inner_function(self, node: ast.FunctionDef, has_class_cell: bool) -> ast.stmt:
        names = {n.attr if isinstance(n, ast.Attribute) else n.id for n in map(_callee, node.decorator_list) if n}
        kept = "do_not_convert" in names
        if kept or any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in _own_nodes(node)):
            return node
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return Rewriter(node.args, has_class_cell).function(node, node.decorator_list)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Left as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Its methods are converted in place; all else of it is left as it is."""
        node.body = [self._inner_function(s, True) if isinstance(s, ast.FunctionDef) else s for s in node.body]
        return node

    # ---- statements

    def block(self, statements: list[ast.stmt], live: frozenset[str]) -> list[ast.stmt]:
        """Statements in a row, after which the names `live` are read."""
        live_after = []
        for statement in reversed(statements):
            live_after.append(live)
            facts = self._names.statement(statement)
            live = facts.reads | (live - facts.binds)
        done: list[ast.stmt] = []
        for statement, after in zip(statements, reversed(live_after)):
            done += self._statement(statement, after)
        return done

    def _statement(self, node: ast.stmt, live: frozenset[str]) -> list[ast.stmt]:
        if isinstance(node, ast.Global | ast.Nonlocal):
            return []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            unread = name == RETURNED or name.startswith(("ag__break_", "ag__continue_"))
            if unread and name not in self._flags and name not in live:
                return []
        if isinstance(node, ast.If):
            new = self._if(node, live)
        elif isinstance(node, ast.While):
            new = self._while(node, live)
        elif isinstance(node, ast.For):
            new = self._for(node, live)
        elif isinstance(node, ast.With):
            items = [ast.withitem(self.visit(i.context_expr), i.optional_vars) for i in node.items]
            new = [ast.With(items, self.block(node.body, live) or [ast.Pass()])]
        elif isinstance(node, ast.Try | ast.TryStar):
            new = [self._try(node, live)]
        elif isinstance(node, ast.Match):
            cases = [
                ast.match_case(c.pattern, c.guard and self.visit(c.guard), self.block(c.body, live) or [ast.Pass()])
                for c in node.cases
            ]
            new = [ast.Match(self.visit(node.subject), cases)]
        elif isinstance(node, ast.Assert):
            message = _later(self.visit(node.msg)) if node.msg is not None else ast.Constant(None)
            new = [ast.Expr(_operator("assert_", self.visit(node.test), message))]
        else:
            new = [self.visit(node)]
        return [_at_head(n, node) for n in new]

    def _try(self, node: ast.Try | ast.TryStar, live: frozenset[str]) -> ast.stmt:
        around = live | self._names.block([*(s for h in node.handlers for s in h.body), *node.orelse]).reads
        around |= self._names.block(node.finalbody).reads
        handlers = [
            ast.copy_location(
                ast.ExceptHandler(h.type and self.visit(h.type), h.name, self.block(h.body, around) or [ast.Pass()]), h
            )
            for h in node.handlers
        ]
        parts = [self.block(b, around) for b in (node.body, node.orelse, node.finalbody)]
        if node.finalbody and not parts[2]:
            parts[2] = [ast.Pass()]
        return type(node)(parts[0] or [ast.Pass()], handlers, parts[1], parts[2])

    # ---- branches and loops

    def _if(self, node: ast.If, live: frozenset[str]) -> list[ast.stmt]:
        reads = self._names.statement(node).reads
        branches = self._names.block(node.body).or_else(self._names.block(node.orelse))
        outputs = self._carried(branches, live) + self._composites(branches)
        others = [name for name in self._carried(branches, reads) if name not in outputs]
        then = self._inner("then", branches, self.block(node.body, live))
        orelse = self._inner("else", branches, self.block(node.orelse, live))
        state, get, set_ = self._state([*outputs, *others])
        arguments = [self.visit(node.test), _load(then.name), _load(orelse.name), get, set_]
        count = ast.Constant(len(outputs))
        return [then, orelse, *state, ast.Expr(_operator("if_", *arguments, _text([*outputs, *others]), count))]

    def _while(self, node: Any, live: frozenset[str]) -> list[ast.stmt]:
        whole = self._names.statement(node)
        used = whole.reads | live
        tested = self._names.expression(node.test)
        block, options = self._without_options(node.body)
        names = self._carried(whole, used) + self._composites(whole)
        condition = node.test
        if node.flags:
            condition = ast.BoolOp(ast.And(), [unless(node.flags), condition])
        test = self._inner("test", tested, [ast.Return(self.visit(condition))])
        body = self._inner("body", whole, self.block(block, used))
        state, get, set_ = self._state(names)
        arguments = [_load(test.name), _load(body.name), get, set_, _text(names), options]
        return [test, body, *state, ast.Expr(_operator("while_", *arguments))]

    def _for(self, node: Any, live: frozenset[str]) -> list[ast.stmt]:
        whole = self._names.statement(node)
        used = whole.reads | live
        block, options = self._without_options(node.body)
        names = self._carried(whole, used) + self._composites(whole)
        start = _at_head(ast.Assign([node.target], _load("ag__item")), node)
        body = self._inner("body", whole, [start, *self.block(block, used)], "ag__item")
        go_on: ast.expr = _later(self.visit(unless(node.flags))) if node.flags else ast.Constant(None)
        state, get, set_ = self._state(names)
        arguments = [self.visit(node.iter), _load(body.name), go_on, get, set_, _text(names), options]
        return [body, *state, ast.Expr(_operator("for_", *arguments))]

    def _carried(self, facts: Facts, used: frozenset[str]) -> list[str]:
        return sorted(name for name in facts.may_bind & used if name.isidentifier())

    def _composites(self, facts: Facts) -> list[str]:
        """The attributes and elements that the block assigns, of objects that it does not replace."""
        found = []
        for name in sorted(facts.may_bind, key=len):
            node = self._names.composite_by_name.get(name)
            if node is None:
                continue
            parts = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            parts |= {ast.unparse(n) for n in ast.walk(node) if n is not node and isinstance(n, ast.expr)}
            if not parts & facts.may_bind:
                found.append(name)
        return found

    def _inner(self, what: str, facts: Facts, body: list[ast.stmt], *parameters: str) -> ast.FunctionDef:
        """An inner function that binds the variables of the function around it."""
        self._count += 1
        bound = {name for name in facts.may_bind if name.isidentifier()}
        self._shared |= bound
        declarations = self._declarations(bound & self._globals, bound - self._globals)
        return _definition(f"ag__{what}_{self._count}", _arguments(*parameters), [*declarations, *body])

    def _state(self, names: list[str]) -> tuple[list[ast.stmt], ast.expr, ast.expr]:
        """The writer's definition, and the expressions for reader and writer of the named values."""
        if not names:
            nothing = ast.Attribute(_load("ag__"), "no_state", ast.Load())
            return [], nothing, nothing
        places = [self._names.composite_by_name.get(n) or _load(n) for n in names]
        readers: list[ast.expr] = [
            _operator("read", _later(_in_context(p, ast.Load())), ast.Constant(n)) for p, n in zip(places, names)
        ]
        reader = _later(ast.Tuple(readers, ast.Load()))
        self._count += 1
        stores: list[ast.expr] = [_in_context(p, ast.Store()) for p in places]
        writes: list[ast.stmt] = [ast.Assign([ast.Tuple(stores, ast.Store())], _load("ag__values"))]
        for place in places:
            undefined = _operator("is_undefined", _in_context(place, ast.Load()))
            writes.append(ast.If(undefined, [ast.Delete([_in_context(place, ast.Del())])], []))
        simple = {n for n in names if n.isidentifier()}
        self._shared |= simple
        declarations = self._declarations(simple & self._globals, simple - self._globals)
        writer = _definition(f"ag__set_{self._count}", _arguments("ag__values"), [*declarations, *writes])
        return [writer], reader, _load(writer.name)

    def _without_options(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], ast.expr]:
        """The statements without `set_loop_options(...)`, and a function that gives the options."""
        for number, statement in enumerate(body):
            call = statement.value if isinstance(statement, ast.Expr) else None
            callee = _callee(call) if isinstance(call, ast.Call) else None
            name = getattr(callee, "attr", None) or getattr(callee, "id", None)
            if name == "set_loop_options" and isinstance(call, ast.Call):
                keywords = [ast.keyword(k, v) for k, v in zip(_LOOP_OPTIONS, call.args)] + call.keywords
                options = ast.Call(ast.Attribute(_load("ag__"), "dict", ast.Load()), [], keywords)
                rest = body[:number] + body[number + 1 :]
                return rest, _later(self.visit(options))
        return body, ast.Constant(None)

    # ---- expressions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`f(x)` as `ag__.call(f, x)`, which converts `f` if it is the user's."""
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", None) == "ag__":
            return self.generic_visit(node)
        if name == "super" and not node.args and not node.keywords and self._has_class_cell and self._first:
            return ast.copy_location(ast.Call(node.func, [_load("__class__"), _load(self._first)], []), node)
        if name == "locals" and not node.args:
            return ast.copy_location(self._locals(), node)
        if name in ("eval", "exec") and len(node.args) == 1:
            here = [self.visit(node.args[0]), ast.Call(_load("globals"), [], []), self._locals()]
            return ast.copy_location(ast.Call(node.func, here, node.keywords), node)
        self.generic_visit(node)
        call = _operator("call", node.func, *node.args)
        call.keywords = node.keywords
        return _placed(call, node)

    def _locals(self) -> ast.expr:
        names = sorted(self._own_names)
        self._shared |= self._own_names
        readers: list[ast.expr] = [_later(_load(n)) for n in names]
        return _operator("local_values", ast.Dict([ast.Constant(n) for n in names], readers))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a and b` as `ag__.and_(a, lambda: b)`."""
        self.generic_visit(node)
        if _binds_names(*node.values[1:]):
            return node
        first, *rest = node.values
        operator = _operator("and_" if isinstance(node.op, ast.And) else "or_", first, *map(_later, rest))
        return _placed(operator, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not a` as `ag__.not_(a)`."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return _placed(_operator("not_", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """`a < b < c` as `ag__.chain(a, "<", lambda: b, "<", lambda: c)`; `x in tensor` as a chain of one."""
        self.generic_visit(node)
        membership = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        if (len(node.ops) == 1 and not membership) or _binds_names(*node.comparators):
            return node
        parts: list[ast.expr] = [node.left]
        for operator, operand in zip(node.ops, node.comparators):
            parts += [ast.Constant(_COMPARISONS[type(operator)]), _later(operand)]
        return _placed(_operator("chain", *parts), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`a if c else b` as `ag__.if_expression(c, lambda: a, lambda: b, "c")`."""
        text = ast.unparse(node.test)
        self.generic_visit(node)
        if _binds_names(node.body, node.orelse):
            return node
        choice = _operator("if_expression", node.test, _later(node.body), _later(node.orelse), ast.Constant(text))
        return _placed(choice, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """As an assignment: an annotation would forbid `nonlocal`."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """An inner function of one expression."""
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node.body)):
            return node
        return self.generic_visit(node)


def _callee(node: ast.expr) -> ast.Name | ast.Attribute | None:
    found = node.func if isinstance(node, ast.Call) else node
    return found if isinstance(found, ast.Name | ast.Attribute) else None


def _in_context(node: Any, context: ast.expr_context) -> ast.expr:
    """A copy of a name, attribute or element, to be loaded, stored or deleted."""
    if isinstance(node, ast.Name):
        new: ast.expr = ast.Name(node.id, context)
    elif isinstance(node, ast.Attribute):
        new = ast.Attribute(_in_context(node.value, ast.Load()), node.attr, context)
    else:
        index = ast.Constant(node.slice.value) if isinstance(node.slice, ast.Constant) else _load(node.slice.id)
        new = ast.Subscript(_in_context(node.value, ast.Load()), index, context)
    return ast.copy_location(new, node)


def _text(names: list[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())
