"""The explorers as widgets: the same module, with choices that Python can set."""

from copy import copy

import anywidget
import traitlets

from mha_teach.widgets._host import Explorer, module
from mha_teach.widgets.attention_map import AttentionMap
from mha_teach.widgets.heads import Heads
from mha_teach.widgets.mask import Mask
from mha_teach.widgets.one_query import OneQuery


class LiveExplorer(anywidget.AnyWidget):
    """An explorer whose choices are synchronised with a kernel.

    Its display carries the static figure too, so that a saved notebook without the
    widget's state still shows something that works.
    """

    def __init__(self, explorer: Explorer):
        self._explorer = explorer
        super().__init__(**explorer.state())

    def _now(self) -> Explorer:
        now = copy(self._explorer)  # not .at(): some choices may still have to follow
        vars(now).update({name: getattr(self, name) for name in now.choices})
        return now

    def _check(self, proposal):
        name = proposal.trait.name
        try:
            self._now().check_choice(name, proposal.value)
        except (TypeError, ValueError) as error:
            if self._cross_validation_lock:  # of many choices at once, none is kept
                raise traitlets.TraitError(str(error)) from error
            raise
        return self._explorer.choices[name](name, proposal.value)

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
    grid = traitlets.TraitType().tag(sync=True)
    num_heads = traitlets.TraitType().tag(sync=True)
    d_k = traitlets.TraitType().tag(sync=True)
    selected_head = traitlets.TraitType().tag(sync=True)
    selected_key = traitlets.TraitType().tag(sync=True)

    _known = traitlets.validate(*Heads.choices)(LiveExplorer._check)
    _kept = traitlets.validate("grid")(LiveExplorer._keep)

    @traitlets.observe("num_heads")
    def _keep_a_head(self, change):
        self.selected_head = min(self.selected_head, self.num_heads - 1)


class LiveAttentionMap(LiveExplorer):
    """:class:`AttentionMap` as a widget."""

    _esm = module(AttentionMap.parts)
    map = traitlets.TraitType().tag(sync=True)
    layer = traitlets.TraitType().tag(sync=True)
    head = traitlets.TraitType().tag(sync=True)
    selected_query = traitlets.TraitType().tag(sync=True)
    hide_special = traitlets.TraitType().tag(sync=True)

    _known = traitlets.validate(*AttentionMap.choices)(LiveExplorer._check)
    _kept = traitlets.validate("map")(LiveExplorer._keep)


class LiveOneQuery(LiveExplorer):
    """:class:`OneQuery` as a widget."""

    _esm = module(OneQuery.parts)
    plane = traitlets.TraitType().tag(sync=True)
    x = traitlets.TraitType().tag(sync=True)
    y = traitlets.TraitType().tag(sync=True)
    temperature = traitlets.TraitType().tag(sync=True)

    _known = traitlets.validate(*OneQuery.choices)(LiveExplorer._check)
    _kept = traitlets.validate("plane")(LiveExplorer._keep)


class LiveMask(LiveExplorer):
    """:class:`Mask` as a widget; ``preset`` and ``mask`` follow each other."""

    _esm = module(Mask.parts)
    attention = traitlets.TraitType().tag(sync=True)
    mask = traitlets.TraitType().tag(sync=True)
    changed = traitlets.TraitType().tag(sync=True)
    preset = traitlets.TraitType("")  # the page finds it from the mask

    _known = traitlets.validate(*Mask.choices)(LiveExplorer._check)
    _kept = traitlets.validate("attention")(LiveExplorer._keep)

    @traitlets.validate("preset")
    def _known_preset(self, proposal):
        now = self._now()
        if proposal.value != now.preset:
            now.preset_mask(proposal.value)
        return proposal.value

    @traitlets.observe("mask")
    def _name_the_mask(self, change):
        self.preset = self._now().preset

    @traitlets.observe("preset")
    def _paint_the_preset(self, change):
        now = self._now()
        if self.preset != now.preset:
            self.mask = now.preset_mask(self.preset)
