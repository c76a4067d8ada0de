"""The parts of the studio, each answering its own messages."""

from poise.studio.panels.advice import AdvicePanel
from poise.studio.panels.clips import CapturePanel
from poise.studio.panels.files import FilesPanel
from poise.studio.panels.performing import PerformingPanel, StreamingPanel
from poise.studio.panels.photo import PhotoPanel
from poise.studio.panels.poses import PosesPanel, RangesPanel
from poise.studio.panels.posing import PosingPanel, PropsPanel
from poise.studio.panels.styles import StylesPanel
from poise.studio.panels.timeline import TimelinePanel

PANELS = (
    *(PosingPanel, PosesPanel, PropsPanel, StylesPanel, TimelinePanel, RangesPanel),
    *(PhotoPanel, CapturePanel, PerformingPanel, FilesPanel, StreamingPanel, AdvicePanel),
)
