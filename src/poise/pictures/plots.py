"""Matplotlib for charts and latent spaces; it is optional."""

from io import BytesIO

from PIL import Image

from poise.errors import MissingExtraError

try:
    from matplotlib import colors
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Plot
    from matplotlib.patches import Ellipse
    from matplotlib.ticker import LogFormatter
except ImportError as error:
    raise MissingExtraError("matplotlib", extra="plots", purpose="drawing a chart") from error

__all__ = ["Axes", "Ellipse", "LogFormatter", "Plot", "colors", "image_of"]


def image_of(plot: Plot) -> Image.Image:
    """A plot as a picture."""
    page = BytesIO()
    plot.savefig(page, format="png")
    return Image.open(page).convert("RGB")
