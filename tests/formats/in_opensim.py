"""Run by OpenSim's Python: scales a model by the setup beside a motion, and prints where the motion puts its joints."""

import json
import os
import sys
from pathlib import Path

import opensim

motion = Path(sys.argv[1]).resolve()
os.chdir(motion.parent)
opensim.ScaleTool(f"{motion.stem}_scale.xml").run()
model = opensim.Model(f"{motion.stem}.osim")
state = model.initSystem()
stored = opensim.Storage(str(motion))
model.getSimbodyEngine().convertDegreesToRadians(stored)
labels = stored.getColumnLabels()
coordinates = [model.getCoordinateSet().get(labels.get(k)) for k in range(1, labels.getSize())]
frames = []
for row in range(stored.getSize()):
    values = stored.getStateVector(row).getData()
    for k, coordinate in enumerate(coordinates):
        if not coordinate.getLocked(state):
            coordinate.setValue(state, values.get(k), False)
    model.realizePosition(state)
    joints = [model.getJointSet().get(k).getChildFrame() for k in range(model.getJointSet().getSize())]
    places = {joint.findBaseFrame().getName(): joint.getPositionInGround(state) for joint in joints}
    frames.append({name: [place.get(axis) for axis in range(3)] for name, place in places.items()})
print(json.dumps(frames))
