"""The explorers as widgets: the same module, with choices that Python can set."""

import anywidget
import traitlets

from mha_teach.widgets._host import Explorer, module
from mha_teach.widgets.attention_map import AttentionMap
from mha_teach.widgets.heads import Heads


class LiveExplorer(anywidget.AnyWidget):
    """An explorer whose choices are synchronised with a kernel.

    Its display carries the static figure too, so that a saved notebook without the
    widget's state still shows something that works.
    """

    def __init__(self, explorer: Explorer):
        self._explorer = explorer
        super().__init__(**explorer.state())

    def _now(self) -> Explorer:
        names = self._explorer.choices
        return self._explorer.at(**{name: getattr(self, name) for name in names})

    def _check(self, proposal):
        self._now().check_choice(proposal.trait.name, proposal.value)
        return proposal.value

    def _keep(self, proposal):
        name = proposal.trait.name
        if proposal.value != self._explorer.data()[name]:
            raise ValueError(
                f"{name} cannot be changed; make a new "
                f"{type(self._explorer).__name__}(…).live()"
            )
        return proposal.value

    def _repr_mimebundle_(self, **kwargs):
        bundle, metadata = super()._repr_mimebundle_(**kwargs)
        return bundle | self._now()._repr_mimebundle_(), metadata


class LiveHeads(LiveExplorer):
    """:class:`Heads` as a widget."""

    _esm = module(Heads.parts)
    grid = traitlets.Dict().tag(sync=True)
    num_heads = traitlets.Int().tag(sync=True)
    d_k = traitlets.Int().tag(sync=True)
    selected_head = traitlets.Int().tag(sync=True)
    selected_key = traitlets.Int().tag(sync=True)

    _known = traitlets.validate(*Heads.choices)(LiveExplorer._check)
    _kept = traitlets.validate("grid")(LiveExplorer._keep)

    @traitlets.observe("num_heads")
    def _keep_a_head(self, change):
        self.selected_head = min(self.selected_head, self.num_heads - 1)


class LiveAttentionMap(LiveExplorer):
    """:class:`AttentionMap` as a widget."""

    _esm = module(AttentionMap.parts)
    map = traitlets.Dict().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    selected_query = traitlets.Int().tag(sync=True)
    hide_special = traitlets.Bool().tag(sync=True)

    _known = traitlets.validate(*AttentionMap.choices)(LiveExplorer._check)
    _kept = traitlets.validate("map")(LiveExplorer._keep)
