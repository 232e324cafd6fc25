"""Inserts hooks into expressions: walruses, comprehension variables, generator expressions."""

from __future__ import annotations

import ast
import sys
from typing import Final

from shapetrace.instrument import scopes
from shapetrace.instrument.hooks import HookPlan, HookSite
from shapetrace.instrument.nodes import HookNodes, beginning, line_of, location, variable

_HAVE_FRAMES: Final = sys.version_info < (3, 12)
"""Comprehensions other than generator expressions run in frames of their own."""


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function's statements."""

    def __init__(
        self, plan: HookPlan, hooks: HookNodes, wanted: frozenset[str], plain: frozenset[str]
    ) -> None:
        self._plan: Final = plan
        self._hooks: Final = hooks
        self._wanted: Final = wanted
        self._plain: Final = plain
        """The names that are also variables of the function itself."""
        self._merges: Final = any(each.merges for each in plan.followings)
        self._depth = 1
        self._count = 0

    def within(self, node: ast.AST) -> None:
        """Rewrite all expressions of a node, which has no statements in it."""
        if self._wanted:
            self.generic_visit(node)

    def within_field(self, node: ast.AST, name: str) -> None:
        """Rewrite one expression of a node."""
        expression = getattr(node, name)
        if self._wanted and expression is not None:
            setattr(node, name, self.visit(expression))

    def around(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Rewrite the parts of a definition that are evaluated where it stands."""
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        if isinstance(node, ast.ClassDef):
            node.bases = [self.visit(each) for each in node.bases]
            node.keywords = [self.visit(each) for each in node.keywords]
        else:
            self._defaults(node.args)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Only the defaults of a lambda are evaluated where it stands."""
        self._defaults(node.args)
        return node

    def _defaults(self, given: ast.arguments) -> None:
        given.defaults = [self.visit(each) for each in given.defaults]
        given.kw_defaults = [each and self.visit(each) for each in given.kw_defaults]

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """A walrus: its value goes through a hook."""
        node.value = self.visit(node.value)
        name = node.target.id
        if name not in self._wanted:
            return node
        self._count += 1
        site = HookSite(self._plan, ((name, node.target.lineno, True),), depth=self._depth)
        return self._hooks.through(site.look, node, [], beginning(node), location(node))

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """Has variables of its own."""
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        """Has variables of its own."""
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        """Has variables of its own."""
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """Has variables of its own, and a frame that need not run where it was made."""
        depth, count = self._depth, self._count
        self._comprehension(node)
        if self._count == count:
            return node
        site, where = HookSite(self._plan, depth=depth), location(node)
        return self._hooks.through(site.generate, node, [], where, where)

    def _comprehension(self, node: scopes.Comprehension) -> ast.AST:
        node.generators[0].iter = self.visit(node.generators[0].iter)
        outer = self._depth
        if isinstance(node, ast.GeneratorExp):
            self._depth = 1
        elif _HAVE_FRAMES:
            self._depth += 1
        for index, generator in enumerate(node.generators):
            if index:
                generator.iter = self.visit(generator.iter)
            generator.ifs = [self.visit(each) for each in generator.ifs]
            heard = {
                name: line for name, line in scopes.stores(generator.target) if name in self._wanted
            }
            where = line_of(generator.target)
            for is_plain in (True, False):
                marks = tuple(
                    (name, line, True)
                    for name, line in heard.items()
                    if (name in self._plain) is is_plain
                )
                if not marks or (is_plain and not self._merges):
                    continue
                self._count += 1
                names = [variable(name, where) for name, _, _ in marks]
                site = HookSite(self._plan, marks, depth=self._depth, binds=False)
                look = site.look_inside if is_plain else site.look
                generator.ifs.insert(0, self._hooks.condition(look, names, where))
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        self._depth = outer
        return node
