"""A small FBX in text: three bones in centimetres, Z up, the middle one bending, as Autodesk's programs write it.

With a mesh: a red square about the head, of which the lower corners follow the spine by half. With a picture: the
square's material names that file.
"""

from __future__ import annotations

TICKS = 46186158000  # of FBX's clock in a second


SQUARE = ((0.0, 0.0, 140.0), (20.0, 0.0, 140.0), (20.0, 0.0, 190.0), (0.0, 0.0, 190.0))  # centimetres
_CARRIERS = ((12, (0, 0, 140), (0, 1), (0.5, 0.5)), (13, (0, 0, 170), (0, 1, 2, 3), (0.5, 0.5, 1.0, 1.0)))
_MESH = f"""
    Geometry: 41, "Geometry::Coat", "Mesh" {{
        Vertices: *12 {{
            a: {",".join(f"{part:g}" for point in SQUARE for part in point)}
        }}
        PolygonVertexIndex: *4 {{
            a: 0,1,2,-4
        }}
        LayerElementMaterial: 0 {{
            MappingInformationType: "AllSame"
            ReferenceInformationType: "IndexToDirect"
            Materials: *1 {{
                a: 0
            }}
        }}
        Layer: 0 {{
            LayerElement:  {{
                Type: "LayerElementMaterial"
                TypedIndex: 0
            }}
        }}
    }}
    Model: 42, "Model::Coat", "Mesh" {{
    }}
    Material: 43, "Material::Red", "" {{
        ShadingModel: "lambert"
        Properties70:  {{
            P: "DiffuseColor", "Color", "", "A",1,0,0
        }}
    }}
    Deformer: 44, "Deformer::Skin", "Skin" {{
        Link_DeformAcuracy: 50
    }}
"""
_BOUND = """
    C: "OO",42,0
    C: "OO",41,42
    C: "OO",43,42
    C: "OO",44,41
"""


def _cluster(
    number: int, bone: int, place: tuple[int, int, int], points: tuple[int, ...], weights: tuple[float, ...]
) -> str:
    """A bone that stands upright at a place, and what it carries."""
    x, y, z = place
    return f"""
    Deformer: {number}, "SubDeformer::{bone}", "Cluster" {{
        Indexes: *{len(points)} {{
            a: {",".join(map(str, points))}
        }}
        Weights: *{len(points)} {{
            a: {",".join(map(str, weights))}
        }}
        Transform: *16 {{
            a: 1,0,0,0,0,1,0,0,0,0,1,0,{-x},{-y},{-z},1
        }}
        TransformLink: *16 {{
            a: 1,0,0,0,0,1,0,0,0,0,1,0,{x},{y},{z},1
        }}
    }}
"""


def fbx_text(
    *, angles: tuple[float, ...] = (0.0, 45.0, 90.0), fps: int = 30, mesh: bool = False, picture: str = ""
) -> str:
    """The upper bone turned about X by these degrees, one a frame."""
    clusters = "".join(_cluster(50 + k, *carrier) for k, carrier in enumerate(_CARRIERS))
    links = "".join(
        f'    C: "OO",{50 + k},44\n    C: "OO",{carrier[0]},{50 + k}\n' for k, carrier in enumerate(_CARRIERS)
    )
    dressed, bound = (_MESH + clusters, _BOUND + links) if mesh else ("", "")
    if picture:
        dressed += f"""
    Texture: 45, "Texture::Map", "" {{
        Type: "TextureVideoClip"
        FileName: "{picture}"
        RelativeFilename: "{picture}"
    }}
"""
        bound += '    C: "OP",45,43, "DiffuseColor"\n'
    times = ",".join(str(round(k * TICKS / fps)) for k in range(len(angles)))
    values = ",".join(f"{angle:.6f}" for angle in angles)
    last = round((len(angles) - 1) * TICKS / fps)
    return f"""; FBX 7.4.0 project file
FBXHeaderExtension:  {{
    FBXHeaderVersion: 1003
    FBXVersion: 7400
}}
GlobalSettings:  {{
    Version: 1000
    Properties70:  {{
        P: "UpAxis", "int", "Integer", "",2
        P: "UpAxisSign", "int", "Integer", "",1
        P: "FrontAxis", "int", "Integer", "",1
        P: "FrontAxisSign", "int", "Integer", "",-1
        P: "CoordAxis", "int", "Integer", "",0
        P: "CoordAxisSign", "int", "Integer", "",1
        P: "UnitScaleFactor", "double", "Number", "",1
        P: "TimeMode", "enum", "", "",6
    }}
}}
Objects:  {{
    Model: 11, "Model::Hips", "LimbNode" {{
        Properties70:  {{
            P: "Lcl Translation", "Lcl Translation", "", "A",10,20,90
        }}
    }}
    Model: 12, "Model::mixamorig:Spine", "LimbNode" {{
        Properties70:  {{
            P: "Lcl Translation", "Lcl Translation", "", "A",0,0,50
        }}
    }}
    Model: 13, "Model::Head", "LimbNode" {{
        Properties70:  {{
            P: "Lcl Translation", "Lcl Translation", "", "A",0,0,30
        }}
    }}
    NodeAttribute: 21, "NodeAttribute::", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}
    NodeAttribute: 22, "NodeAttribute::", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}
    NodeAttribute: 23, "NodeAttribute::", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}
{dressed}    AnimationStack: 31, "AnimStack::bend", "" {{
        Properties70:  {{
            P: "LocalStart", "KTime", "Time", "",0
            P: "LocalStop", "KTime", "Time", "",{last}
        }}
    }}
    AnimationLayer: 32, "AnimLayer::Base", "" {{
    }}
    AnimationCurveNode: 33, "AnimCurveNode::R", "" {{
        Properties70:  {{
            P: "d|X", "Number", "", "A",0
            P: "d|Y", "Number", "", "A",0
            P: "d|Z", "Number", "", "A",0
        }}
    }}
    AnimationCurve: 34, "AnimCurve::", "" {{
        Default: 0
        KeyVer: 4008
        KeyTime: *{len(angles)} {{
            a: {times}
        }}
        KeyValueFloat: *{len(angles)} {{
            a: {values}
        }}
        KeyAttrFlags: *1 {{
            a: 4
        }}
        KeyAttrDataFloat: *4 {{
            a: 0,0,0,0
        }}
        KeyAttrRefCount: *1 {{
            a: {len(angles)}
        }}
    }}
}}
Connections:  {{
    C: "OO",11,0
    C: "OO",12,11
    C: "OO",13,12
    C: "OO",21,11
    C: "OO",22,12
    C: "OO",23,13
    C: "OO",32,31
{bound}    C: "OO",33,32
    C: "OP",33,12, "Lcl Rotation"
    C: "OP",34,33, "d|X"
}}
"""
