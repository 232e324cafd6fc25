"""Inserts hooks into the tree of a function."""

from __future__ import annotations

import ast
from typing import Final

from shapetrace.instrument import scopes
from shapetrace.instrument.expressions import Expressions
from shapetrace.instrument.hooks import Finishing, Forgetting, HookPlan, HookSite, Leaving, Mark
from shapetrace.instrument.nodes import (
    NOWHERE,
    HookNodes,
    Location,
    beginning,
    ending,
    line_of,
    location,
    variable,
)
from shapetrace.instrument.source import Definition, first_line

Sure = frozenset[str] | None
"""The names bound at a place on every path to it; None if it is unreachable."""


class Rewriting:
    """Rewrites one function's own statements, not those of nested functions."""

    def __init__(
        self, definition: Definition, plan: HookPlan, names: frozenset[str] | None, returns: bool
    ) -> None:
        self._definition: Final = definition
        self._plan: Final = plan
        self._returns: Final = returns
        self._variables: Final = scopes.variables_of(definition)
        own = self._variables.names
        self._wanted: Final = frozenset(own if names is None else own & names)
        self._steady: Final = (self._wanted & self._variables.plain) - self._variables.shared
        self._hooks: Final = HookNodes(plan.gate, plan.bound, first_line(definition))
        self._expressions: Final = Expressions(
            plan, self._hooks, self._wanted, frozenset(self._variables.plain)
        )
        self._possible: Final = scopes.stored_by_others(definition)
        """The names that may have been bound before, also by an earlier turn of a loop."""
        self._finals = 0
        """Number of enclosing `finally` clauses that are still to run."""
        self._within = 0
        """Number of `finally` clauses around this place."""
        self._has_finally: Final = returns and scopes.has_finally(definition)
        self._drops: Final = self._has_finally and scopes.drops_returns(definition)

    @property
    def objects(self) -> dict[object, object]:
        """The objects that text constants stand for."""
        return self._hooks.objects

    def rewrite(self, first: Location, order: tuple[str, ...]) -> None:
        """Change the definition.

        Its first instruction with a line is at `first`. The variables keep their order, which
        `locals()` shows.
        """
        definition = self._definition
        documented = ast.get_docstring(definition, clean=False) is not None
        docstring, body = definition.body[:documented], definition.body[documented:]
        arguments = scopes.parameters(definition)
        heard = [each.arg for each in arguments if each.arg in self._wanted]
        marks = tuple((name, definition.lineno, True) for name in heard)
        positional = [*definition.args.posonlyargs, *definition.args.args]
        rest = definition.args.vararg
        leading = positional[0].arg if positional else rest.arg if rest else ""
        self._plan.leads_with_rest = not positional and rest is not None
        self._possible.update(each.arg for each in arguments)
        body, sure = self._block(body, frozenset(heard) & self._steady)
        if sure is not None:
            if self._returns:
                body.append(self._hooks.operation(Leaving(self._plan), NOWHERE))
            body.append(ast.Return(None, **NOWHERE))
        site = HookSite(self._plan, marks, calls=True)
        values = [leading]
        if self._plan.tells_arguments:
            values += [each.arg for each in arguments]
        site.others = len(values)
        if self._plan.tells_parameters:
            values += heard
        body = [self._hooks.body(site.enter, values, body, first)]
        names = self._variables.plain - self._variables.shared
        ordered = [name for name in order if name in names]
        if ordered:
            body.insert(0, self._hooks.names_first(ordered))
        definition.body = [*docstring, *body]

    def _block(
        self, statements: list[ast.stmt], sure: Sure, *, before: list[ast.stmt] | None = None
    ) -> tuple[list[ast.stmt], Sure]:
        result = [*(before or [])]
        statement: ast.stmt | None = None
        for index, statement in enumerate(statements):
            hooked, sure = self._statement(statement, sure, statements[index + 1 :])
            result += hooked
        if result and result[-1] is not statement and result[-1].lineno > 0:
            # The compiler gives code at the end of a block the line of the statement before.
            result.append(ast.Pass(**location(result[-1])))
        return result, sure

    def _statement(
        self, node: ast.stmt, sure: Sure, rest: list[ast.stmt]
    ) -> tuple[list[ast.stmt], Sure]:
        if sure is None:
            sure = frozenset()
        self._possible.update(scopes.stored(_before_its_blocks(node)))
        match node:
            case ast.Return():
                return self._return(node, sure), None
            case ast.Raise():
                self._expressions.within(node)
                return [node], None
            case ast.Break() | ast.Continue():
                return [node], None
            case ast.If():
                return [node], self._if(node, sure)
            case ast.While():
                return [node], self._while(node, sure)
            case ast.For() | ast.AsyncFor():
                return [node], self._for(node, sure)
            case ast.With() | ast.AsyncWith():
                return self._with(node, sure, rest)
            case ast.Try() | ast.TryStar():
                return [node], self._try(node, sure)
            case ast.Match():
                return [node], self._match(node, sure)
            case ast.Delete():
                return self._delete(node, sure)
            case ast.Assign(targets=targets):
                stored = scopes.stores(*targets)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
                stored = scopes.stores(target)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                stored = scopes.stores(node)
                changes = bool(node.decorator_list) or isinstance(node, ast.ClassDef)
                changes = changes or scopes.may_change(*scopes.outside(node))
                self._expressions.around(node)
                where = NOWHERE if node.decorator_list else _start_of(node)
                return self._after(node, stored, changes, sure, where)
            case _:
                stored = scopes.stores(node)
        changes = scopes.may_change(node)
        where = ending(node)
        self._expressions.within(node)
        return self._after(node, stored, changes, sure, where)

    def _after(
        self,
        node: ast.stmt,
        stored: list[tuple[str, int]],
        changes: bool,
        sure: frozenset[str],
        where: Location,
    ) -> tuple[list[ast.stmt], frozenset[str]]:
        hooks, sure = self._look(stored, changes, node.lineno, sure, where)
        return [node, *hooks], sure

    def _look(
        self,
        stored: list[tuple[str, int]],
        changes: bool,
        line: int,
        sure: frozenset[str],
        where: Location,
        *,
        raised: bool = False,
    ) -> tuple[list[ast.stmt], frozenset[str]]:
        """The hooks after variables were stored or may have changed, and the names bound then.

        With ``raised``, an exception has led there, which knows its line.
        """
        marks, sure = self._marks(stored, changes, line, sure)
        if raised:
            marks = tuple(sorted(marks, key=lambda mark: mark[2]))
        certain = tuple(mark for mark in marks if mark[0] in sure or mark[2])
        hooks = []
        if certain:
            values = [variable(mark[0], where) for mark in certain]
            site = HookSite(self._plan, certain)
            look = site.look_after_raise if raised else site.look
            hooks.append(self._hooks.statement(look, values, where))
        for mark in marks:
            if mark not in certain:
                site = HookSite(self._plan, (mark,))
                look = site.look_after_raise if raised else site.look
                condition = self._hooks.is_bound(mark[0], where)
                values = [variable(mark[0], where)]
                hooks.append(self._hooks.statement(look, values, where, condition))
        return hooks, sure

    def _marks(
        self, stored: list[tuple[str, int]], changes: bool, line: int, sure: frozenset[str]
    ) -> tuple[tuple[Mark, ...], frozenset[str]]:
        """The marks for a hook, and the names surely bound then."""
        assigned = {name: at for name, at in stored if name in self._wanted}
        marks: list[Mark] = [(name, at, True) for name, at in assigned.items()]
        sure |= self._steady & assigned.keys()
        if changes:
            others = self._steady - assigned.keys() - (self._variables.handled - sure)
            others &= self._possible
            self._plan.tracked.update(others - sure)
            marks += ((name, line, False) for name in sorted(others))
        return tuple(marks), sure

    def _forget(self, names: set[str], where: Location) -> list[ast.stmt]:
        names &= self._wanted
        if not names:
            return []
        gate = Forgetting(self._plan)
        gate.names = frozenset(names)
        return [self._hooks.operation(gate, where)]

    def _drop(self, where: Location) -> list[ast.stmt]:
        """The hooks that drop a pending return, if there can be one."""
        if not self._has_finally:
            return []
        gate = Forgetting(self._plan)
        gate.within = self._within
        return [self._hooks.operation(gate, where)]

    def _return(self, node: ast.Return, sure: frozenset[str]) -> list[ast.stmt]:
        if node.value is None:
            if not self._returns:
                return [node]
            leaving = Leaving(self._plan)
            leaving.postponed = self._within if self._finals else None
            return [self._hooks.operation(leaving, location(node)), node]
        changes = scopes.may_change(node.value)
        before, after = beginning(node.value), ending(node.value)
        self._expressions.within(node)
        marks, _ = self._marks([], changes, node.lineno, sure)
        if marks or self._returns:
            values = [
                variable(name, after) if name in sure else self._hooks.if_bound(name, after)
                for name, _, _ in marks
            ]
            postponed = self._within if self._finals else None
            site = HookSite(self._plan, marks, calls=True, line=node.lineno, postponed=postponed)
            node.value = self._hooks.through(site.return_, node.value, values, before, after)
        return [node]

    def _if(self, node: ast.If, sure: frozenset[str]) -> Sure:
        changes, where = scopes.may_change(node.test), line_of(node.test)
        self._expressions.within_field(node, "test")
        before, _ = self._look([], changes, node.test.lineno, sure, where)
        node.body, first = self._block(node.body, sure, before=before)
        before, _ = self._look([], changes, node.test.lineno, sure, where)
        node.orelse, second = self._block(node.orelse, sure, before=before)
        return _both(first, second)

    def _while(self, node: ast.While, sure: frozenset[str]) -> Sure:
        sure -= scopes.deleted(node.body)
        changes, where = scopes.may_change(node.test), line_of(node.test)
        self._expressions.within_field(node, "test")
        # At the begin of the body: a jump back would report the test's line once more.
        inside = _first_line_of(node.body[0])
        before, _ = self._look([], changes, node.test.lineno, sure, inside)
        node.body, _ = self._block(node.body, sure, before=before)
        before, _ = self._look([], changes, node.test.lineno, sure, where)
        node.orelse, _ = self._block(node.orelse, sure, before=before)
        return sure - scopes.deleted(node.orelse)

    def _for(self, node: ast.For | ast.AsyncFor, sure: frozenset[str]) -> Sure:
        sure -= scopes.deleted(node.body)
        begun, over = line_of(node.target), line_of(node.iter)
        self._expressions.within_field(node, "iter")
        self._expressions.within_field(node, "target")
        before, inside = self._look(scopes.stores(node.target), True, node.lineno, sure, begun)
        node.body, _ = self._block(node.body, inside, before=before)
        before, _ = self._look([], True, node.iter.lineno, sure, over)
        node.orelse, _ = self._block(node.orelse, sure, before=before)
        return sure - scopes.deleted(node.orelse)

    def _with(
        self, node: ast.With | ast.AsyncWith, sure: frozenset[str], rest: list[ast.stmt]
    ) -> tuple[list[ast.stmt], Sure]:
        stored: list[tuple[str, int]] = []
        for item in node.items:
            stored += scopes.stores(item.optional_vars)
            self._expressions.within(item)
        after = sure - scopes.deleted(node.body)
        last = node.items[-1].optional_vars or node.items[-1].context_expr
        before, inside = self._look(stored, True, node.lineno, sure, line_of(last))
        node.body, _ = self._block(node.body, inside, before=before)
        # Where an error was swallowed Python 3.12 jumps back here from the line of the statement,
        # on which it would be that line once more.
        following = next((each for each in rest if _has_instructions(each)), None)
        where = _start_of(node) if following is None else _first_line_of(following)
        hooks, after = self._look([], True, node.lineno, after, where)
        return [node, *hooks], after

    def _try(self, node: ast.Try | ast.TryStar, sure: frozenset[str]) -> Sure:
        handled = sure - scopes.deleted(node.body)
        begun: list[ast.stmt] = []
        if self._returns and self._drops and node.finalbody and not self._finals:
            begun += self._drop(_first_line_of(node.body[0]))
        self._finals += bool(node.finalbody)
        node.body, after = self._block(node.body, sure, before=begun)
        node.orelse, end = self._block(node.orelse, after)
        after = None if after is None else end
        for handler in node.handlers:
            self._expressions.within_field(handler, "type")
            names = {handler.name} if handler.name else set()
            where = _start_of(handler)
            before = self._drop(where)
            stored = scopes.stores(handler) if handler.name in self._wanted else []
            hooks, inside = self._look(stored, True, handler.lineno, handled, where, raised=True)
            handler.body, end = self._block(handler.body, inside, before=[*before, *hooks])
            after = _both(after, None if end is None else end - names)
        self._finals -= bool(node.finalbody)
        if not node.finalbody:
            return after
        entire: list[ast.AST] = [*node.body, *node.handlers, *node.orelse]
        last = node.finalbody[-1]
        where = NOWHERE if hasattr(last, "body") else ending(last)
        sure -= scopes.deleted(entire)
        first = node.finalbody[0]
        start = _first_line_of(first)
        before, sure = self._look([], True, first.lineno, sure, start, raised=True)
        self._within += 1
        node.finalbody, end = self._block(node.finalbody, sure, before=before)
        self._within -= 1
        if self._has_finally and not self._finals and end is not None:
            finishing = Finishing(self._plan)
            finishing.within = self._within
            node.finalbody.append(self._hooks.operation(finishing, where))
        if after is None or end is None:
            return None
        return (after - scopes.deleted(node.finalbody)) | end

    def _match(self, node: ast.Match, sure: frozenset[str]) -> Sure:
        self._expressions.within_field(node, "subject")
        after: Sure = None
        for case in node.cases:
            stored = scopes.stores(case.pattern)
            changes, where = True, line_of(case.pattern)
            if case.guard is not None:
                self._expressions.within_field(case, "guard")
                marks, _ = self._marks(stored, False, case.pattern.lineno, sure)
                if marks:
                    values = [variable(mark[0], where) for mark in marks]
                    heard = self._hooks.condition(HookSite(self._plan, marks).look, values, where)
                    case.guard = ast.BoolOp(ast.And(), [heard, case.guard], **where)
                inside = sure | (self._steady & {name for name, _ in stored})
                before, inside = self._look(
                    [], changes, case.pattern.lineno, inside, line_of(case.guard)
                )
            else:
                before, inside = self._look(stored, changes, case.pattern.lineno, sure, where)
            case.body, end = self._block(case.body, inside, before=before)
            after = _both(after, end)
        return _both(after, sure)

    def _delete(self, node: ast.Delete, sure: frozenset[str]) -> tuple[list[ast.stmt], Sure]:
        gone = scopes.deleted([node])
        changes = scopes.may_change(node)
        self._expressions.within(node)
        hooks, sure = self._look([], changes, node.lineno, sure - gone, line_of(node))
        before = self._forget(gone, line_of(node)) if gone & self._wanted else []
        return [*before, node, *hooks], sure


def _before_its_blocks(node: ast.stmt) -> list[ast.AST | None]:
    """The part of a statement before its first block; all of it if the block repeats."""
    match node:
        case ast.If(test=test):
            return [test]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [*items]
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            names = [ast.Name(each.name, ast.Store()) for each in handlers if each.name]
            return [*names, *(each.type for each in handlers)]
        case ast.Match(subject=subject, cases=cases):
            return [subject, *(part for each in cases for part in (each.pattern, each.guard))]
    return [node]


def _has_instructions(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    return not isinstance(node, ast.Global | ast.Nonlocal)


def _both(first: Sure, second: Sure) -> Sure:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _start_of(node: ast.stmt | ast.excepthandler) -> Location:
    return location(node) | {"end_lineno": node.lineno, "end_col_offset": node.col_offset + 1}


def _first_line_of(node: ast.stmt) -> Location:
    """The line of a statement's first instruction."""
    first: ast.expr | None = None
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            outside = scopes.outside(node)
            if outside and (node.decorator_list or not isinstance(node, ast.ClassDef)):
                first = outside[0] if isinstance(outside[0], ast.expr) else None
        case ast.AugAssign(target=target):
            first = target
        case ast.Delete(targets=[target, *_]):
            first = None if isinstance(target, ast.Name) else target
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            first = value
        case ast.Expr(value=value) | ast.Return(value=value):
            first = value
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            first = test
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.Match(subject=value):
            first = value
        case ast.With(items=[item, *_]) | ast.AsyncWith(items=[item, *_]):
            first = item.context_expr
        case ast.Raise(exc=value):
            first = value
    where = _start_of(node) if first is None else beginning(first)
    return where | {"end_lineno": where["lineno"], "end_col_offset": where["col_offset"] + 1}
