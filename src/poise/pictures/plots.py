"""Matplotlib for charts and latent spaces; it is optional."""

from poise.errors import MissingExtraError

try:
    from matplotlib import colors
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Plot
    from matplotlib.patches import Ellipse
    from matplotlib.ticker import LogFormatter
except ImportError as error:
    raise MissingExtraError("matplotlib", extra="plots", purpose="drawing a chart") from error

__all__ = ["Axes", "Ellipse", "LogFormatter", "Plot", "colors"]
