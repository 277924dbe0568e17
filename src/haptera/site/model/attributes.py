"""The attributes of one entity of a site: what is given, and their texts once they are filled."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from haptera.model.declared.desired_check import check_attribute
from haptera.model.declared.schema import Kind
from haptera.model.errors import HapteraError
from haptera.site.model.values import Entries, Given, Values
from haptera.site.syntax.template import fill, unknown
from haptera.site.syntax.tree import Errors, Leaf


@dataclass(slots=True)
class Attributes:
    """All attributes of an entity; `own` is what its templates know of it besides them."""

    kind: Kind
    own: Mapping[str, str]
    constants: Mapping[str, str]
    values: Values
    texts: dict[str, str] = field(default_factory=dict)
    _filling: list[str] = field(default_factory=list)

    @property
    def given(self) -> Mapping[str, Given]:
        return self.values.given

    def give(self, entries: Entries, rank: int, errors: Errors) -> None:
        self.values.give(entries, rank, errors)

    def known(self, name: str) -> str:
        """The value of a name in a template.

        Raises:
            HapteraError: nothing does.
        """
        if name in self.own:
            return self.own[name]
        if name in self.texts:
            return self.texts[name]
        if name in self.constants:
            return self.constants[name]
        raise unknown(name, [*self.own, *self.texts, *self.constants])

    def fill(self, errors: Errors) -> None:
        """Fill the attributes, each once what it names is filled."""
        for name in self.given:
            self._fill(name, errors)

    def _fill(self, name: str, errors: Errors) -> str:
        if name in self.texts:
            return self.texts[name]
        given = self.given[name]
        if isinstance(given.value, Leaf):
            with errors.at(given.value.place):
                self._filling.append(name)
                try:
                    filled = fill(given.value.text, lambda one: self._needed(one, errors))
                    self.texts[name] = check_attribute(self.kind, name, filled)
                finally:
                    self._filling.pop()
            return self.texts.setdefault(name, "")
        return self.texts.setdefault(name, str(given.value))

    def _needed(self, name: str, errors: Errors) -> str:
        if name in self.own or name not in self.given or name in self.texts:
            return self.known(name)
        if name in self._filling:
            chain = " > ".join([*self._filling[self._filling.index(name) :], name])
            raise HapteraError(
                f"attributes refer to each other in a circle: {chain}",
                do="remove one reference",
            )
        return self._fill(name, errors)
