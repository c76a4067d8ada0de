"""The parts of the studio, each answering its own messages."""

from poise.studio.panels.advice import AdvicePanel
from poise.studio.panels.capture import CapturePanel
from poise.studio.panels.files import FilesPanel
from poise.studio.panels.learning import LearningPanel
from poise.studio.panels.performing import PerformingPanel
from poise.studio.panels.photo import PhotoPanel
from poise.studio.panels.poses import PosesPanel
from poise.studio.panels.posing import PosingPanel
from poise.studio.panels.props import PropsPanel
from poise.studio.panels.ranges import RangesPanel
from poise.studio.panels.streaming import StreamingPanel
from poise.studio.panels.styles import StylesPanel
from poise.studio.panels.timeline import TimelinePanel

PANELS = (
    PosingPanel,
    PosesPanel,
    PropsPanel,
    StylesPanel,
    TimelinePanel,
    RangesPanel,
    PhotoPanel,
    CapturePanel,
    PerformingPanel,
    LearningPanel,
    FilesPanel,
    StreamingPanel,
    AdvicePanel,
)
