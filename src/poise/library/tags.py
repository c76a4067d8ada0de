"""Who performs a clip and what they do, as far as its name tells: CMU's list, Bandai Namco's names, or plain words."""

from __future__ import annotations

import re

from poise.motion.datasets import catalogue

_BANDAI = re.compile(r"dataset-(?P<set>\d+)_(?P<action>[^_]+)_(?P<style>[^_]+)_\d+")
_CMU = re.compile(r"(?P<subject>\d{2,3})_\d{2}(_|$)")
_WORD = re.compile(r"[a-z]{3,}")
_LINKS = {"and", "the", "with", "underneath"}


def performer_of(name: str) -> str:
    """Who performs, or nothing where the name does not say."""
    if found := _CMU.match(name):
        return f"CMU {found['subject']}"
    if found := _BANDAI.match(name):
        return f"Bandai {found['set']}"
    return ""


def tags_of(name: str) -> tuple[str, ...]:
    """Words for what is done, and how."""
    if found := _BANDAI.match(name):
        return tuple(dict.fromkeys((*_words(found["action"].replace("-", " ")), found["style"])))
    described = {clip.name: clip.description for clip in catalogue()}
    return _words(described.get(name, name))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(_WORD.findall(text.casefold())) if word not in _LINKS)
