"""Poses an armature by a few handles: moves empties, and Poise finds the body (`poise serve` on this machine).

It also fills an action between its pose keys as people move, mends an action, and writes either with few keys.

The armature stays as it is; only the rotations of its pose bones and the place of its pelvis are set. Of a rig that
Rigify generated, these are the FK and tweak controls of trunk, arms and legs.
"""

import json
import socket

import bpy
from bpy.app.handlers import persistent
from mathutils import Matrix, Quaternion, Vector

HANDLES = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis")
TURN = Matrix(((1, 0, 0), (0, 0, -1), (0, 1, 0)))  # to Blender's axes (Z up) from Poise's (Y up)
METARIG = "ORG-"  # before the names of a metarig's bones in a rig that Rigify generated
PASSES, NEAR = 20, 1e-4  # over controls that move each other, until bones are this near, in metres
_links = {}  # by armature: its connection


class Link:
    """A connection to `poise serve`, with one armature open in it."""

    def __init__(self, armature, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.lines = self.socket.makefile("rwb")
        self.controls = controls_of(armature)
        self.parents = hung(armature, METARIG if self.controls else "")
        places = {name: armature.matrix_world @ armature.data.bones[name].head_local for name in self.parents}
        found = self.ask(
            open=[
                {"name": name, "parent": parent, "head": list(TURN.inverted() @ places[name])}
                for name, parent in self.parents.items()
            ]
        )
        self.root, self.roles, self.joints = found["root"], found["roles"], found["joints"]
        self.seen = None

    def ask(self, **message):
        """One line there and one back."""
        self.lines.write(json.dumps(message).encode() + b"\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline() or b'{"error": "poise serve ended the connection"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def hung(armature, prefix):
    """The bones of a prefix, parents first, and the one above each; Rigify hangs those of a spine on its controls."""
    found = {}
    for bone in sorted(armature.data.bones, key=lambda one: len(one.parent_recursive)):
        if bone.name.startswith(prefix):
            above = next((one.name for one in bone.parent_recursive if one.name.startswith(prefix)), None)
            found[bone.name] = above
    if prefix:
        spine = sorted(name for name in found if name.startswith(f"{prefix}spine"))
        found.update(zip(spine[1:], spine[:-1], strict=True))
        found = {name: found[name] for name in sorted(found, key=lambda name: len(chain(found, name)))}
    return found


def chain(parents, name):
    """A bone and all above it."""
    return [] if name is None else [name, *chain(parents, parents[name])]


def controls_of(armature):
    """The controls that move the bones of a generated rig, and which bone each goes with; empty for another rig."""
    found = {}
    for bone in armature.pose.bones:
        if not bone.name.startswith(METARIG):
            continue
        copied = [one.subtarget for one in bone.constraints if one.type == "COPY_TRANSFORMS"]
        for name in (*copied, bone.parent.name if bone.parent else ""):
            if name == "head" or name.startswith(("shoulder", "tweak_spine")) or "_fk" in name:
                above = armature.pose.bones[name].parent.name
                if name.startswith("tweak") and ("_fk" in above or above == "neck"):
                    found.setdefault(above, bone.name)
                found[name] = bone.name
                break
    spine = f"{METARIG}spine"
    return (
        {"torso": spine, **found} if spine in armature.pose.bones and "torso" in armature.pose.bones else {}
    )


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
    (move_controls if link.controls else turn_bones)(armature, link, answer)
    return {role: far for role, far in answer["far"].items() if far > 0.005}


def turn_bones(armature, link, answer):
    """Sets the rotations of bones that move by themselves, and the place of the first."""
    for name, turn in answer["turns"].items():
        bone = armature.pose.bones[name]
        axes = (armature.matrix_world @ bone.bone.matrix_local).to_3x3().normalized()
        turned = TURN @ Quaternion(turn).to_matrix() @ TURN.inverted()
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = (axes.inverted() @ turned @ axes).to_quaternion()
    root = armature.pose.bones[link.root]
    rest = armature.matrix_world @ root.bone.matrix_local
    root.location = rest.inverted() @ (TURN @ Vector(answer["place"]))


def move_controls(armature, link, answer):
    """Puts controls where the bones that they move should be, by and by: they hang on each other by constraints."""
    wanted = placed(armature, link, answer)
    for bone in armature.pose.bones:
        if "IK_FK" in bone:
            bone["IK_FK"] = 1.0
    for _ in range(PASSES):
        for name, bone in link.controls.items():
            control, of = armature.pose.bones[name], armature.data.bones[bone]
            control.matrix = wanted[bone] @ of.matrix_local.inverted() @ control.bone.matrix_local
        armature.update_tag()
        bpy.context.view_layer.update()
        off = [
            (armature.pose.bones[bone].head - wanted[bone].translation).length
            for bone in link.controls.values()
        ]
        if max(off) < NEAR:
            return


def placed(armature, link, answer):
    """Where bones should be, as matrices within the armature: each turned about its head, below the one above it."""
    world, found = armature.matrix_world, {}
    for name, parent in link.parents.items():
        rest = world @ armature.data.bones[name].matrix_local
        turn = (
            TURN @ Quaternion(answer["turns"].get(name, (1, 0, 0, 0))).to_matrix() @ TURN.inverted()
        ).to_4x4()
        at = found[parent] @ rest.translation if parent else TURN @ Vector(answer["place"])
        turned = (found[parent].to_3x3().to_4x4() if parent else Matrix.Identity(4)) @ turn
        found[name] = Matrix.Translation(at) @ turned @ Matrix.Translation(-rest.translation)
    return {
        name: world.inverted() @ moved @ world @ armature.data.bones[name].matrix_local
        for name, moved in found.items()
    }


def shown_in(armature, link):
    """Where the armature is in this frame, as Poise has it: the place of the first joint, and turns by joint."""
    world, turned, turns = armature.matrix_world, {}, {}
    for name in link.joints:
        bone, parent = armature.pose.bones[name], link.parents[name]
        rest = (world @ bone.bone.matrix_local).to_3x3().normalized()
        turned[name] = TURN.inverted() @ (world @ bone.matrix).to_3x3().normalized() @ rest.inverted() @ TURN
        above = turned.get(parent, Matrix.Identity(3))
        turns[name] = list((above.inverted() @ turned[name]).to_quaternion())
    return list(TURN.inverted() @ (world @ armature.pose.bones[link.root].matrix).translation), turns


def shown_over(armature, link, scene, frames):
    """The same of several frames."""
    was, found = scene.frame_current, []
    for frame in frames:
        scene.frame_set(frame)
        found.append(shown_in(armature, link))
    scene.frame_set(was)
    return found


def curves_of(action):
    """All curves of an action, of Blender 4 or 5."""
    if hasattr(action, "layers") and len(action.layers):
        bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
        return [curve for bag in bags for curve in bag.fcurves]
    return list(getattr(action, "fcurves", ()))


def keyed_frames(armature):
    """The frames in which the armature has pose keys."""
    data = armature.animation_data
    curves = curves_of(data.action) if data and data.action else []
    posed = (curve for curve in curves if curve.data_path.startswith("pose.bones"))
    return sorted({round(point.co.x) for curve in posed for point in curve.keyframe_points})


def new_action(armature, name):
    """Gives the armature an empty action."""
    (armature.animation_data or armature.animation_data_create()).action = bpy.data.actions.new(name)


def move(armature, link, answer, first, scene):
    """Keys a motion that Poise sent, in every frame from the first, or as curves through few keys."""
    if "place" in answer:
        draw_curves(armature, link, answer, first)
        return
    was = scene.frame_current
    for number, place in enumerate(answer["places"]):
        scene.frame_set(first + number)
        pose = {"place": place, "turns": {name: turns[number] for name, turns in answer["turns"].items()}}
        (move_controls if link.controls else turn_bones)(armature, link, pose)
        key(armature, link, first + number)
    scene.frame_set(was)


def draw_curves(armature, link, answer, first):
    """Sets Bezier curves that are those of Poise: handles reach a third of the way to the next key."""
    world = armature.matrix_world
    for name, curve in answer["turns"].items():
        bone = armature.pose.bones[name]
        axes = (world @ bone.bone.matrix_local).to_3x3().normalized()
        turn = (axes.inverted() @ TURN).to_quaternion()

        def in_bone(value, turn=turn):
            return turn @ Quaternion(value) @ turn.inverted()

        bone.rotation_mode = "QUATERNION"
        values = [in_bone(value) for value in curve["values"]]
        slopes = [in_bone(slope) for slope in curve["slopes"]]
        for axis in range(4):
            points = [(v[axis], s[axis]) for v, s in zip(values, slopes, strict=True)]
            draw_curve(armature, bone, "rotation_quaternion", axis, curve["frames"], points, first)
    root = armature.pose.bones[link.root]
    rest = (world @ root.bone.matrix_local).inverted()
    values = [rest @ (TURN @ Vector(value)) for value in answer["place"]["values"]]
    slopes = [rest.to_3x3() @ (TURN @ Vector(slope)) for slope in answer["place"]["slopes"]]
    for axis in range(3):
        points = [(v[axis], s[axis]) for v, s in zip(values, slopes, strict=True)]
        draw_curve(armature, root, "location", axis, answer["place"]["frames"], points, first)


def draw_curve(armature, bone, path, axis, frames, points, first):
    """One component of a bone's curve."""
    action, whole = (
        armature.animation_data.action,
        f'pose.bones["{bpy.utils.escape_identifier(bone.name)}"].{path}',
    )
    if hasattr(action, "fcurve_ensure_for_datablock"):
        curve = action.fcurve_ensure_for_datablock(armature, whole, index=axis)
    else:
        curve = action.fcurves.new(whole, index=axis, action_group=bone.name)
    curve.auto_smoothing = "NONE"
    curve.keyframe_points.add(len(frames))
    for number, (frame, (value, slope)) in enumerate(zip(frames, points, strict=True)):
        point = curve.keyframe_points[number]
        before = (frame - frames[number - 1]) / 3.0 if number else 1.0 / 3.0
        after = (frames[number + 1] - frame) / 3.0 if number + 1 < len(frames) else 1.0 / 3.0
        point.co = (first + frame, value)
        point.interpolation = "BEZIER"
        point.handle_left_type = point.handle_right_type = "FREE"
        point.handle_left = (first + frame - before, value - before * slope)
        point.handle_right = (first + frame + after, value + after * slope)
    curve.update()


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
        new_action(armature, f"{name} by Poise")
        try:
            link.ask(rest=True)
            for frame in range(scene.frame_start, scene.frame_end + 1):
                scene.frame_set(frame)
                solve(armature, link)
                key(armature, link, frame)
        except (OSError, RuntimeError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        scene.frame_set(was)
        return {"FINISHED"}


class Moving(Linked):
    """Operators that send frames of the action, and write another one."""

    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender asks

    def execute(self, context):
        name, scene = armature_of(context.object), context.scene
        armature, link = bpy.data.objects[name], _links[name]
        few = scene.poise_few and not link.controls  # controls hang on each other, so each frame is keyed
        frames = keyed_frames(armature)
        if len(frames) < 2:
            self.report({"ERROR"}, "key the armature at two frames or more")
            return {"CANCELLED"}
        try:
            answer = link.ask(**self.asked(armature, link, scene, frames), keys=few)
        except (OSError, RuntimeError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        new_action(armature, f"{name} {self.bl_label.lower()} by Poise")
        move(armature, link, answer, frames[0], scene)
        for line in (*answer.get("notes", ()), *([answer["keys"]] if few else [])):
            self.report({"INFO"}, line)
        return {"FINISHED"}

    def over(self, armature, link, scene, frames):
        """The motion from the first of these frames to the last."""
        found = shown_over(armature, link, scene, range(frames[0], frames[-1] + 1))
        turns = {name: [turns[name] for _, turns in found] for name in link.joints}
        return {"fps": rate_of(scene), "places": [place for place, _ in found], "turns": turns}


class POISE_OT_between(Moving, bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Fill the action between its keys, each of which is a whole pose, as people move"""

    bl_idname, bl_label = "poise.between", "In-between"

    def asked(self, armature, link, scene, frames):
        found = shown_over(armature, link, scene, frames)
        keys = [
            {"frame": frame - frames[0], "place": place, "turns": turns}
            for frame, (place, turns) in zip(frames, found, strict=True)
        ]
        return {"between": {"fps": rate_of(scene), "keys": keys}}


class POISE_OT_repair(Moving, bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Mend the action: jitter, sliding feet, a sunk floor, missing frames"""

    bl_idname, bl_label = "poise.repair", "Repair"

    def asked(self, armature, link, scene, frames):
        return {"motion": self.over(armature, link, scene, frames), "repair": True}


class POISE_OT_keys(Moving, bpy.types.Operator):  # noqa: N801 - as Blender asks
    """Keep few keys of the action, within 1 cm and 2 degrees of every frame"""

    bl_idname, bl_label = "poise.keys", "Few keys"

    def asked(self, armature, link, scene, frames):
        return {"motion": self.over(armature, link, scene, frames)}

    def execute(self, context):
        link, was = _links[armature_of(context.object)], context.scene.poise_few
        if link.controls:
            self.report(
                {"ERROR"}, "controls of a generated rig hang on each other: they are keyed at every frame"
            )
            return {"CANCELLED"}
        context.scene.poise_few = True
        done = super().execute(context)
        context.scene.poise_few = was
        return done


def rate_of(scene):
    """Frames a second."""
    return scene.render.fps / scene.render.fps_base


def key(armature, link, frame):
    """Keys what `solve` has set."""
    bones = armature.pose.bones
    root = bones[link.root]
    moved = [bones[name] for name in link.controls] or [root, *root.children_recursive]
    for bone in moved:
        euler = bone.rotation_mode not in ("QUATERNION", "AXIS_ANGLE")
        bone.keyframe_insert(
            "rotation_euler" if euler else f"rotation_{bone.rotation_mode.lower()}", frame=frame
        )
        if link.controls or bone == root:
            bone.keyframe_insert("location", frame=frame)
    for bone in bones if link.controls else ():
        if "IK_FK" in bone:
            bone.keyframe_insert('["IK_FK"]', frame=frame)


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
        column.separator()
        column.prop(context.scene, "poise_few")
        for operator in ("poise.between", "poise.repair", "poise.keys"):
            column.operator(operator)


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


CLASSES = (
    POISE_OT_connect, POISE_OT_solve, POISE_OT_bake, POISE_OT_between, POISE_OT_repair, POISE_OT_keys, POISE_PT_panel,
)  # fmt: skip


def register():
    for one in CLASSES:
        bpy.utils.register_class(one)
    bpy.types.Scene.poise_port = bpy.props.IntProperty(name="Port", default=39550, min=1, max=65535)
    bpy.types.Scene.poise_live = bpy.props.BoolProperty(
        name="Live", description="Pose while handles are moved"
    )
    bpy.types.Scene.poise_few = bpy.props.BoolProperty(
        name="Few keys", description="Write few keys of every curve, within 1 cm and 2 degrees"
    )
    bpy.app.handlers.depsgraph_update_post.append(follow)


def unregister():
    bpy.app.handlers.depsgraph_update_post.remove(follow)
    del bpy.types.Scene.poise_few, bpy.types.Scene.poise_live, bpy.types.Scene.poise_port
    for one in reversed(CLASSES):
        bpy.utils.unregister_class(one)
