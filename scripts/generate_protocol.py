"""`npm run generate`: writes the TypeScript side of the messages between extension and server.

The dataclasses in ``shapetrace.server.messages`` are the definition. A dataclass becomes an
interface, a named ``Literal`` of texts a union with an array of its values, a message a constant,
and docstrings become comments.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from shapetrace.server.messages.all_messages import MODULES, messages_of
from shapetrace.server.messages.codec import camel_case
from shapetrace.server.messages.declarations import Declaration, Request, ServerNotification, Unread
from shapetrace.server.messages.settings import Initialization

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "extension" / "src" / "protocol.generated.ts"

WIDTH: Final = 100

HEAD: Final = """\
/**
 * The messages between this extension and the language server beyond LSP's own.
 *
 * Generated from `python_backend/shapetrace/server/messages` by `npm run generate`: do not edit.
 * In one file, as it is not read from end to end: the messages are grouped in their definition.
 */

/** A request to the server. */
export interface Request<Parameters, Result> {
  readonly method: string;
  /** Never there: it tells the compiler what the types are. */
  readonly types?: (parameters: Parameters) => Result;
}

/** A notification to the server. */
export interface ClientNotification<Parameters> {
  readonly method: string;
  /** Never there: it tells the compiler what the type is. */
  readonly types?: (parameters: Parameters) => void;
}

/** A notification from the server. */
export interface ServerNotification<Parameters> {
  readonly method: string;
  /** Never there: it tells the compiler what the type is. */
  readonly types?: () => Parameters;
}
"""

PLAIN: Final[dict[Any, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    Any: "unknown",
}


def protocol() -> str:
    """The whole file, as it should be."""
    return "\n".join([HEAD, *blocks(MODULES, [Initialization])])


def blocks(modules: Sequence[ModuleType], also_sent: Sequence[type]) -> list[str]:
    """The types and constants of what modules declare; and of what LSP's own messages carry."""
    declared = [message for module in modules for message in messages_of(module).values()]
    received = {kind for each in declared for kind in _classes(_received(each))}
    writer = _Writer(received)
    for kind in also_sent:
        writer.write_class(kind)
    for module in modules:
        docs = _docs_of(module)
        for name, message in messages_of(module).items():
            writer.write_message(name, message, docs.get(name, ""))
    return writer.blocks


def _received(message: Declaration) -> type:
    """The type of the values that the server sends for a message."""
    match message:
        case Request():
            return message.result
        case ServerNotification():
            return message.params
        case _:
            return NoneType


def _classes(kind: Any) -> Iterator[type]:
    """The dataclasses that are in a type."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
        for inner in _hints(kind).values():
            yield from _classes(inner)
    else:
        for inner in get_args(kind):
            yield from _classes(inner)


class _Writer:
    """Writes each type once, before what needs it."""

    def __init__(self, received: set[type]) -> None:
        self.blocks: list[str] = []
        self._received = received
        self._written: dict[str, Any] = {}

    def write_message(self, name: str, message: Declaration, doc: str) -> None:
        """Write the constant of a message."""
        kinds = [message.params, *([message.result] if isinstance(message, Request) else [])]
        texts = [self._text(kind) for kind in kinds]
        self.blocks.append(
            f"{_comment(doc)}"
            f"export const {name}: {type(message).__name__}<{', '.join(texts)}> = {{\n"
            f"  method: {json.dumps(message.method)},\n"
            "};\n"
        )

    def write_class(self, kind: type) -> None:
        """Write the interface of a dataclass."""
        if not self._is_new(kind.__name__, kind):
            return
        doc = _comment(inspect.getdoc(kind) or "")
        members = "".join(self._members(kind))
        base = next((it for it in kind.__bases__ if is_dataclass(it)), None)
        if base is not None:
            extended = f" extends {self._text(base)}"
        elif members:
            extended = ""
        else:
            self.blocks.append(f"{doc}export type {kind.__name__} = Record<string, never>;\n")
            return
        self.blocks.append(f"{doc}export interface {kind.__name__}{extended} {{\n{members}}}\n")

    def _members(self, kind: Any) -> Iterator[str]:
        """The fields that a dataclass itself has."""
        docs, hints = _docs_of(kind), _hints(kind)
        own = inspect.get_annotations(kind)
        module = sys.modules[kind.__module__]
        for each in fields(kind):
            if each.name in own:
                # The server sends every field; the extension may leave out what is None then.
                mark = "?" if each.default is None and kind not in self._received else ""
                text = self._text(hints[each.name], module)
                yield _comment(docs.get(each.name, ""), "  ")
                yield f"  readonly {camel_case(each.name)}{mark}: {text};\n"

    def _text(self, kind: Any, module: ModuleType | None = None) -> str:
        """A type as TypeScript writes it; what it names is written first."""
        origin, inside = get_origin(kind), get_args(kind)
        if kind in PLAIN:
            return PLAIN[kind]
        if isinstance(kind, type) and is_dataclass(kind):
            self.write_class(kind)
            return kind.__name__
        if origin is Annotated:
            unread = next((each for each in inside if isinstance(each, Unread)), None)
            return self._text(inside[0] if unread is None else unread.kind, module)
        if origin is Literal:
            return self._choices(kind, module)
        if origin in (Union, UnionType):
            return " | ".join(self._text(each, module) for each in inside)
        if origin is tuple and inside[1:] == (...,):
            item = self._text(inside[0], module)
            is_simple = item.isidentifier()
            return f"readonly {item if is_simple else f'({item})'}[]"
        if origin is tuple:
            return f"readonly [{', '.join(self._text(each, module) for each in inside)}]"
        raise TypeError(f"{kind} has no counterpart in TypeScript")

    def _choices(self, choices: Any, module: ModuleType | None) -> str:
        """One of some texts or numbers: by its name if the module gives it one."""
        values = [json.dumps(each) for each in get_args(choices)]
        named = {} if module is None else vars(module)
        name = next((it for it, value in named.items() if value == choices), None)
        if module is None or name is None:
            return " | ".join(values)
        if self._is_new(name, choices):
            constant = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper() + "S"
            line = f"export const {constant} = [{', '.join(values)}] as const;"
            if len(line) > WIDTH:
                items = "".join(f"  {each},\n" for each in values)
                line = f"export const {constant} = [\n{items}] as const;"
            doc = _comment(_docs_of(module).get(name, ""))
            union = f"export type {name} = (typeof {constant})[number];"
            self.blocks.append(f"{line}\n\n{doc}{union}\n")
        return name

    def _is_new(self, name: str, kind: Any) -> bool:
        if name not in self._written:
            self._written[name] = kind
            return True
        if self._written[name] != kind:
            raise ValueError(f"there are two types of the name {name}")
        return False


def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _docs_of(definition: ModuleType | type) -> dict[str, str]:
    """The docstrings below the assignments of a module or class, by the assigned names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(definition)))
    body = tree.body
    if isinstance(definition, type) and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    found: dict[str, str] = {}
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                found[name] = inspect.cleandoc(doc)
    return found


def _comment(doc: str, indent: str = "") -> str:
    """A docstring as a comment, with its line end; nothing where there is none."""
    if not doc:
        return ""
    text = doc.replace("``", "`")
    text = re.sub(r"\bNone\b", "null", text)
    if "\n" not in text and len(f"{indent}/** {text} */") <= WIDTH:
        return f"{indent}/** {text} */\n"
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        room = WIDTH - len(indent) - len(" * ")
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), room, break_long_words=False)]
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines[1:])
    return f"{indent}/**\n{body}{indent} */\n"


if __name__ == "__main__":
    TARGET.write_text(protocol(), encoding="utf-8")
