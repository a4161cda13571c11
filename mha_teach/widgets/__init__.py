"""Explorers: pictures that answer one question each, in a notebook or on a page."""

from mha_teach.widgets.attention_map import AttentionMap
from mha_teach.widgets.heads import Heads
from mha_teach.widgets.mask import Mask
from mha_teach.widgets.one_query import OneQuery

__all__ = ["AttentionMap", "Heads", "Mask", "OneQuery"]
