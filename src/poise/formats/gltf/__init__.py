"""GLB (binary glTF 2.0): a skeleton, its animation and a mannequin that any viewer or Blender opens, and back again.

glTF 2.0 specification, Khronos Group (2021). What is written passes the Khronos validator without a warning.
"""

from poise.formats.gltf.reading import animations, character, read
from poise.formats.gltf.writing import write

__all__ = ["animations", "character", "read", "write"]
