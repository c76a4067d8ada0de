"""A small FBX in text: three bones in centimetres, Z up, the middle one bending, as Autodesk's programs write it."""

from __future__ import annotations

TICKS = 46186158000  # of FBX's clock in a second


def fbx_text(*, angles: tuple[float, ...] = (0.0, 45.0, 90.0), fps: int = 30) -> str:
    """The upper bone turned about X by these degrees, one a frame."""
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
    AnimationStack: 31, "AnimStack::bend", "" {{
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
    C: "OO",33,32
    C: "OP",33,12, "Lcl Rotation"
    C: "OP",34,33, "d|X"
}}
"""
