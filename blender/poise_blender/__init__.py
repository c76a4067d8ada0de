"""Poses an armature by a few handles: moves empties, and Poise finds the body (`poise serve` on this machine).

The armature stays as it is; only the rotations of its pose bones and the place of its pelvis are set.
"""

import json
import socket

import bpy
from bpy.app.handlers import persistent
from mathutils import Matrix, Quaternion, Vector

HANDLES = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis")
TURN = Matrix(((1, 0, 0), (0, 0, -1), (0, 1, 0)))  # to Blender's axes (Z up) from Poise's (Y up)
_links = {}  # by armature: its connection


class Link:
    """A connection to `poise serve`, with one armature open in it."""

    def __init__(self, armature, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.lines = self.socket.makefile("rwb")
        rest = [(bone, armature.matrix_world @ bone.head_local) for bone in armature.data.bones]
        bones = [
            {
                "name": bone.name,
                "parent": bone.parent.name if bone.parent else None,
                "head": list(TURN.inverted() @ at),
            }
            for bone, at in rest
        ]
        found = self.ask(open=bones)
        self.root, self.roles = found["root"], found["roles"]
        self.seen = None

    def ask(self, **message):
        """One line there and one back."""
        self.lines.write(json.dumps(message).encode() + b"\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline() or b'{"error": "poise serve ended the connection"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def handles_of(armature):
    """The empties that move an armature, by role."""
    return {o["poise_handle"]: o for o in bpy.data.objects if o.get("poise_armature") == armature.name}


def places_of(armature):
    """Where the handles are, in Poise's axes."""
    return {
        role: list(TURN.inverted() @ o.matrix_world.translation) for role, o in handles_of(armature).items()
    }


def solve(armature, link):
    """Asks for the pose that its handles say, and takes it; the distance of every handle that was not reached."""
    places = places_of(armature)
    answer = link.ask(pose=places)
    link.seen = places
    for name, turn in answer["turns"].items():
        bone = armature.pose.bones[name]
        axes = (armature.matrix_world @ bone.bone.matrix_local).to_3x3().normalized()
        turned = TURN @ Quaternion(turn).to_matrix() @ TURN.inverted()
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = (axes.inverted() @ turned @ axes).to_quaternion()
    root = armature.pose.bones[link.root]
    rest = armature.matrix_world @ root.bone.matrix_local
    root.location = rest.inverted() @ (TURN @ Vector(answer["place"]))
    return {role: far for role, far in answer["far"].items() if far > 0.005}


class POISE_OT_connect(bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Connect the active armature to Poise and make its handles"""

    bl_idname, bl_label = "poise.connect", "Connect"

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.type == "ARMATURE"

    def execute(self, context):
        armature = context.object
        try:
            link = _links[armature.name] = Link(armature, context.scene.poise_port)
        except (OSError, RuntimeError) as error:
            self.report({"ERROR"}, f"{error} (is `poise serve` running on port {context.scene.poise_port}?)")
            return {"CANCELLED"}
        size = 0.06 * max(armature.dimensions)
        for role in HANDLES:
            if role in link.roles and role not in handles_of(armature):
                self._handle(context, armature, role, link.roles[role], size)
        return {"FINISHED"}

    def _handle(self, context, armature, role, bone, size):
        empty = bpy.data.objects.new(f"{armature.name} {role}", None)
        empty.empty_display_type, empty.empty_display_size = "SPHERE", size
        empty.location = armature.matrix_world @ armature.pose.bones[bone].head
        empty["poise_armature"], empty["poise_handle"] = armature.name, role
        context.collection.objects.link(empty)


class Linked:
    """Operators that need a connected armature."""

    @classmethod
    def poll(cls, context):
        return context.object is not None and armature_of(context.object) in _links


class POISE_OT_solve(Linked, bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Pose the armature by its handles"""

    bl_idname, bl_label, bl_options = "poise.solve", "Pose", {"REGISTER", "UNDO"}

    def execute(self, context):
        name = armature_of(context.object)
        try:
            far = solve(bpy.data.objects[name], _links[name])
        except (OSError, RuntimeError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if far:
            self.report({"WARNING"}, ", ".join(f"{role} is {100 * d:.1f} cm off" for role, d in far.items()))
        return {"FINISHED"}


class POISE_OT_bake(Linked, bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Pose every frame of the scene by its handles, and key the armature in an action of its own"""

    bl_idname, bl_label, bl_options = "poise.bake", "Bake", {"REGISTER", "UNDO"}

    def execute(self, context):
        name, scene, was = armature_of(context.object), context.scene, context.scene.frame_current
        armature, link = bpy.data.objects[name], _links[name]
        (armature.animation_data or armature.animation_data_create()).action = bpy.data.actions.new(
            f"{name} by Poise"
        )
        try:
            link.ask(rest=True)
            for frame in range(scene.frame_start, scene.frame_end + 1):
                scene.frame_set(frame)
                solve(armature, link)
                for bone in (
                    armature.pose.bones[link.root],
                    *armature.pose.bones[link.root].children_recursive,
                ):
                    bone.keyframe_insert("rotation_quaternion", frame=frame)
                armature.pose.bones[link.root].keyframe_insert("location", frame=frame)
        except (OSError, RuntimeError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        scene.frame_set(was)
        return {"FINISHED"}


class POISE_PT_panel(bpy.types.Panel):  # noqa: N801 - as Blender asks
    """Poise in the sidebar of the 3D view"""

    bl_label, bl_space_type, bl_region_type, bl_category = "Poise", "VIEW_3D", "UI", "Poise"

    def draw(self, context):
        column = self.layout.column()
        column.prop(context.scene, "poise_port")
        column.operator("poise.connect")
        column.prop(context.scene, "poise_live")
        column.operator("poise.solve")
        column.operator("poise.bake")


def armature_of(one):
    """The armature that an object is, or moves."""
    return one.get("poise_armature", one.name)


@persistent
def follow(scene, _graph):
    """While live, poses every connected armature whose handles were moved."""
    if not scene.poise_live:
        return
    for name, link in list(_links.items()):
        armature = bpy.data.objects.get(name)
        if armature is not None and link.seen != places_of(armature):
            try:
                solve(armature, link)
            except (OSError, RuntimeError):
                del _links[name]


CLASSES = (POISE_OT_connect, POISE_OT_solve, POISE_OT_bake, POISE_PT_panel)


def register():
    for one in CLASSES:
        bpy.utils.register_class(one)
    bpy.types.Scene.poise_port = bpy.props.IntProperty(name="Port", default=39550, min=1, max=65535)
    bpy.types.Scene.poise_live = bpy.props.BoolProperty(
        name="Live", description="Pose while handles are moved"
    )
    bpy.app.handlers.depsgraph_update_post.append(follow)


def unregister():
    bpy.app.handlers.depsgraph_update_post.remove(follow)
    del bpy.types.Scene.poise_live, bpy.types.Scene.poise_port
    for one in reversed(CLASSES):
        bpy.utils.unregister_class(one)
