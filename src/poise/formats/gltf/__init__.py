"""GLB (binary glTF 2.0): read and write a skeleton, its animation and a mannequin for any viewer or Blender.

glTF 2.0 specification, Khronos Group (2021). Written files pass the Khronos validator without warnings.
"""

from poise.formats.gltf.packing import glb
from poise.formats.gltf.reading import animations, character, read
from poise.formats.gltf.writing import check_name, write

__all__ = ["animations", "character", "check_name", "glb", "read", "write"]
