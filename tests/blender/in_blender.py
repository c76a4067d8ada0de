"""Runs inside Blender: python in_blender.py ADDON_FOLDER PORT CHARACTER. Poses it by handles, bakes, prints errors."""

import json
import sys
from pathlib import Path

import bpy
from mathutils import Vector

folder, port, character = sys.argv[1:4]
sys.path.insert(0, folder)
import poise_blender  # noqa: E402 - from the folder that was named

bpy.ops.wm.read_factory_settings(use_empty=True)
poise_blender.register()
if character in ("metarig", "rig"):
    bpy.ops.preferences.addon_enable(module="rigify")
    bpy.ops.object.armature_human_metarig_add()
    bpy.context.object.scale = (0.9, 0.9, 0.9)
    if character == "rig":
        bpy.ops.pose.rigify_generate()
else:
    bpy.ops.import_scene.gltf(filepath=character)
armature = bpy.data.objects.get("rig") or next(o for o in bpy.data.objects if o.type == "ARMATURE")
bpy.context.view_layer.objects.active = armature
bpy.context.view_layer.update()
scene = bpy.context.scene
scene.poise_port = int(port)
assert bpy.ops.poise.connect() == {"FINISHED"}
handles = poise_blender.handles_of(armature)
link = poise_blender._links[armature.name]


def far(role):
    """Metres from a handle to its bone."""
    bpy.context.view_layer.update()
    head = armature.matrix_world @ armature.pose.bones[link.roles[role]].head
    return (head - handles[role].matrix_world.translation).length


errors = {"handles": sorted(handles)}
for role in ("pelvis", "head"):
    handles[role].location += Vector((0, 0, -0.1))
handles["right_hand"].location = handles["pelvis"].location + Vector((-0.2, -0.4, 0.1))
handles["left_hand"].location = handles["pelvis"].location + Vector((0.2, -0.4, 0.3))
bpy.context.view_layer.update()
assert bpy.ops.poise.solve() == {"FINISHED"}
errors["posed"] = {role: far(role) for role in handles}
scene.poise_live = True
handles["right_hand"].location += Vector((0.0, 0.0, 0.15))
errors["live"] = far("right_hand")
scene.poise_live = False
scene.frame_start, scene.frame_end = 1, 6
hand = handles["right_hand"]
hand.keyframe_insert("location", frame=1)
hand.location += Vector((0.05, 0.0, 0.1))
hand.keyframe_insert("location", frame=6)
assert bpy.ops.poise.bake() == {"FINISHED"}
errors["baked"], errors["action"] = [], armature.animation_data.action.name
for frame in range(1, 7):
    scene.frame_set(frame)
    errors["baked"].append(far("right_hand"))
if len(sys.argv) > 4:
    bpy.ops.wm.save_as_mainfile(filepath=str(Path(sys.argv[4])))
poise_blender.unregister()
print("ERRORS", json.dumps(errors))
