"""`poise correct FILE SOLVED FIXED`: teach a habit by correcting solved poses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.errors import InvalidValueError

app = App(
    name="correct",
    help_epilogue="""\
Pose a body, fix the pose in any program, and pass both files. Similar poses are
then corrected in the same way. The model does not change: corrections are a
layer on top of it, in their own file.

Examples:
  poise correct habits.json solved.bvh fixed.bvh
  poise correct habits.json --undo
  poise pose --handle right_hand=-0.3,1.2,0.4 --corrections habits.json \\
      -o pose.bvh
""",
)


@app.default
def correct(
    file: Annotated[Path, Parameter(help="The file of corrections. It is created if it does not exist.")],
    solved: Annotated[Path | None, Parameter(help="The solved pose: a motion file.")] = None,
    fixed: Annotated[Path | None, Parameter(help="The corrected pose: a motion file.")] = None,
    *,
    undo: Annotated[bool, Parameter(help="Undo the last correction.")] = False,
) -> None:
    """Add a correction for similar poses, or undo the last one."""
    from poise.apps.learning import read_motion
    from poise.solvers.corrections import Corrections

    known = Corrections.load(file) if file.exists() else Corrections()
    if undo:
        known = known.without_last()
    elif solved is None or fixed is None:
        raise InvalidValueError("give the solved and the fixed pose, or --undo; see poise correct --help")
    else:
        known = known.added(read_motion(solved)[0], read_motion(fixed)[0])
    known.save(file)
    print(f"{file}: {len(known)} correction{'' if len(known) == 1 else 's'}")
