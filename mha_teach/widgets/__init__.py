"""Explorers: pictures that answer one question each, in a notebook or on a page."""

from mha_teach.widgets.attention_map import AttentionMap
from mha_teach.widgets.heads import Heads

__all__ = ["AttentionMap", "Heads"]
