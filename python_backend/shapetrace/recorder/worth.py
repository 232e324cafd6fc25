"""Which recorded calls say what an expression is worth, and which names get that."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Final

from shapetrace.recorder.callees import Callees
from shapetrace.recorder.callsite import Activation, Site
from shapetrace.recorder.naming import short_name
from shapetrace.recorder.records import ModuleVariant, OpVariant
from shapetrace.recorder.targets import Targets

_CALLS: Final = ("CALL", "PRECALL", "BINARY_", "UNARY_", "COMPARE_OP", "LOAD_ATTR")


class Worth:
    """Reads each function once."""

    def __init__(self) -> None:
        self.callees = Callees()
        self.targets = Targets()
        self._stores: dict[int, tuple[CodeType, dict[int, tuple[int, ...]]]] = {}

    def is_direct(self, call: OpVariant | ModuleVariant) -> bool:
        """Whether what a call returned is the value of the expression at its place."""
        site = call.site
        if site.activation.in_torch:
            return False
        name = ""
        if isinstance(call, OpVariant):
            name = short_name(call.function)
            if call.passed_on or (name != "__bool__" and self._only_asks(site)):
                return False
        return not self.callees.calls_back(site.activation.code, site.offset, name)

    def _only_asks(self, site: Site) -> bool:
        """Whether something that was called at a place asked whether a tensor is true."""
        return site.asks_for_truth and not self.callees.compares_and_asks(
            site.activation.code, site.offset
        )

    def is_told(self, activation: Activation, store: int) -> bool:
        """Whether recorded calls tell what a store stores, so that it need not be remembered."""
        return self.teller_of(activation, store) is not None

    def teller_of(self, activation: Activation, store: int) -> Site | None:
        """A place whose last call tells what a store stores, if there is one."""
        calls = self._calls_stored_by(activation.code).get(store, ())
        sites = (activation.sites.get(offset) for offset in calls)
        return next((site for site in sites if site is not None and self._has_value(site)), None)

    def _has_value(self, site: Site) -> bool:
        if site.last is not None:
            return site.last.output is not None and self.is_direct(site.last)
        records = [] if site.modules is None else list(site.modules.values())
        variants = [record.last for record in records if record.last is not None]
        return any(each.output is not None and self.is_direct(each) for each in variants)

    def _calls_stored_by(self, code: CodeType) -> dict[int, tuple[int, ...]]:
        known = self._stores.get(id(code))
        if known is None:
            calls: dict[int, tuple[int, ...]] = {}
            for instruction in dis.get_instructions(code):
                if instruction.opname.startswith(_CALLS):
                    for target in self.targets.of(code, instruction.offset):
                        calls[target.offset] = (*calls.get(target.offset, ()), instruction.offset)
            known = self._stores[id(code)] = (code, calls)
        return known[1]
