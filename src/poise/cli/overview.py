"""The list of commands and the program's own help, which is plain text so that `poise --help` answers at once."""

COMMANDS = {
    "demo": "act, write, draw and read back: the whole way in a few seconds",
    "studio": "pose, keyframe and explore styles in the browser",
    "act": "have the procedural performer act, and write the motion",
    "learn": "learn a model of poses from motion files",
    "pose": "pose a whole body by a few handles",
    "correct": "teach a habit by correcting solved poses",
    "keyframe": "make a motion from the paths of a few handles",
    "image": "pose a whole body from points in a photo",
    "video": "a whole body from ordinary videos of a person, without markers",
    "phase": "show and correct the rhythm of clips: phase, steps, transitions",
    "simulate": "let a motion model move alone: walk, run, and from one into the other",
    "animate": "make a motion from foot contacts, paths, keyframes and any constraint",
    "edit": "drag a handle's path through a clip; the body follows",
    "markers": "solve a body from recorded markers; fill their gaps",
    "fuse": "make one motion of several sources: markers, cameras, inertial sensors, keys",
    "perform": "animate a whole body by a few markers, from a library or live",
    "model": "check model files from somebody else",
    "blend": "blend models, such as two styles, into one",
    "latent": "draw the latent space of a style",
    "sample": "draw poses at random from a style",
    "info": "show what is in motion files: joints, frames, height, units",
    "render": "draw a motion as a contact sheet or an animation",
    "retarget": "carry a motion onto your own character, feet and hands where they touch",
    "character": "show how a character is understood: which joint plays which part",
    "clean": "remove the foot slide of a motion",
    "convert": "convert between file formats; trim, resample, mirror",
    "library": "keep many clips as one searchable store",
    "serve": "pose characters of other programs over a local socket",
    "stream": "send a motion live over OSC (VMC), to Blender, Unreal or VTuber tools",
    "cameras": "calibrate cameras by a printed board; film a motion with simulated ones",
    "evaluate": "measure every method the same way, and draw what came out",
    "data": "list and fetch public recordings",
    "doctor": "report what is installed, what is missing, and how fast this machine is",
    "warm-up": "compile the numerical kernels, so that nothing waits later",
}
"""Command to what it does, in the order of the help; its `app` is in the module of that name beside this file."""

HELP = """\
Usage: poise COMMAND ...

A few handles in, a natural whole-body pose or motion out.

Commands (see poise COMMAND --help):
{commands}

Options:
  --help, -h  show this
  --version   show the version
  --install-completion  complete commands and options with the Tab key in this shell
  --overwrite replace files that a command would write beside the one you named
  --debug     where a mistake arose, not only which (as does POISE_DEBUG=1)

Examples:
  poise demo                                 see what it does
  poise act walk --style tired -o walk.bvh   a motion without recording one
  poise info walk.bvh                        what is in a file
  poise render walk.bvh -o walk.png          look at it
  poise convert walk.bvh walk.glb            for Blender and game engines
  poise retarget walk.bvh me.glb -o out.glb  on your own character
"""


def overview() -> str:
    """What `poise --help` prints."""
    return HELP.format(commands="\n".join(f"  {name:10s}  {what}" for name, what in COMMANDS.items()))
