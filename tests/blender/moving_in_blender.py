"""Runs inside Blender: python moving_in_blender.py ADDON_FOLDER PORT CHARACTER. Edits its action, prints results."""

import json
import sys

import bpy
from mathutils import Vector

folder, port, character = sys.argv[1:4]
sys.path.insert(0, folder)
import poise_blender  # noqa: E402 - from the folder that was named

bpy.ops.wm.read_factory_settings(use_empty=True)
poise_blender.register()
scene = bpy.context.scene
scene.render.fps = 30
bpy.ops.import_scene.gltf(filepath=character)
armature = next(one for one in bpy.data.objects if one.type == "ARMATURE")
bpy.context.view_layer.objects.active = armature
scene.poise_port = int(port)
frames = poise_blender.keyed_frames(armature)
scene.frame_set(frames[0])
assert bpy.ops.poise.connect() == {"FINISHED"}
link = poise_blender._links[armature.name]


def seen(chosen):
    """Heads of bones, and their axes, in the world at frames."""
    found = []
    for frame in chosen:
        scene.frame_set(frame)
        bones = [armature.matrix_world @ armature.pose.bones[name].matrix for name in link.joints]
        found.append([(bone.translation.copy(), bone.to_quaternion()) for bone in bones])
    return found


def apart(one, other):
    """Metres and degrees, at most."""
    pairs = [pair for a, b in zip(one, other, strict=True) for pair in zip(a, b, strict=True)]
    way = max((a[0] - b[0]).length for a, b in pairs)
    turn = max(a[1].rotation_difference(b[1]).angle for a, b in pairs)
    return way, min(turn, 6.283185307 - turn) * 57.29577951


def keys():
    """How many keys the action has, by curve."""
    curves = poise_blender.curves_of(armature.animation_data.action)
    return sum(len(curve.keyframe_points) for curve in curves), len(curves)


whole = range(frames[0], frames[-1] + 1)
before, source = seen(whole), armature.animation_data.action
assert bpy.ops.poise.keys() == {"FINISHED"}
found = {
    "frames": len(whole),
    "few": apart(before, seen(whole)),
    "keys": keys(),
    "action": armature.animation_data.action.name,
}
armature.animation_data.action = source
assert bpy.ops.poise.repair() == {"FINISHED"}
found["repaired"], found["repaired keys"] = apart(before, seen(whole)), keys()
poses = list(whole)[:: len(whole) // 3]
armature.animation_data.action = source
posed = seen(poses)
matrices = poise_blender.shown_over(armature, link, scene, poses)
poise_blender.new_action(armature, "poses")
for frame, (place, turns) in zip(poses, matrices, strict=True):
    poise_blender.turn_bones(armature, link, {"place": place, "turns": turns})
    poise_blender.key(armature, link, frame)
found["posed"] = apart(posed, seen(poses))
assert poise_blender.keyed_frames(armature) == poses
assert bpy.ops.poise.between() == {"FINISHED"}
found["between"], found["between frames"] = (
    apart(posed, seen(poses)),
    len(poise_blender.keyed_frames(armature)),
)
found["span"] = poses[-1] - poses[0] + 1
scene.frame_set((poses[0] + poses[1]) // 2)
hips = armature.pose.bones[link.root].matrix.translation
found["moves"] = (hips - Vector(posed[0][0][0])).length
poise_blender.unregister()
print("FOUND", json.dumps(found))
