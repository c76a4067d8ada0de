"""The list of commands and the program's own help, as plain text, so that `poise --help` is instant."""

COMMANDS = {
    "demo": "see that everything works: write and draw a motion, pose a body",
    "studio": "pose, keyframe and explore styles in the browser",
    "act": "make a procedural motion: walk, throw, box and others",
    "learn": "learn a model of poses from motion files",
    "pose": "pose a whole body from a few handles",
    "correct": "learn from your corrections of solved poses",
    "keyframe": "make a motion from the paths of a few handles",
    "image": "pose a whole body from points in a photo",
    "video": "get motion from ordinary video, without markers",
    "phase": "find and correct the phase, steps and transitions of clips",
    "simulate": "let a motion model walk and run on its own",
    "animate": "make a motion from foot contacts, paths and keyframes",
    "edit": "change the path of a handle in a clip; the body follows",
    "markers": "solve a body from optical markers, or fill their gaps",
    "fuse": "combine markers, cameras, inertial sensors and keys into a motion",
    "perform": "drive a body with a few markers, sensors or a webcam, also live",
    "model": "check and describe model files",
    "blend": "blend models, such as two styles, into one",
    "latent": "draw the latent space of a style",
    "sample": "make random poses of a style",
    "info": "show what is in motion files: joints, frames, height, units",
    "render": "draw a motion as a contact sheet or an animation",
    "retarget": "put a motion on your own character",
    "character": "show and correct the roles of a character's joints",
    "clean": "remove the foot slide of a motion",
    "convert": "convert between file formats; trim, resample, mirror",
    "library": "build and search a library of many clips",
    "serve": "pose characters of other programs over a local socket",
    "stream": "send a motion live over OSC (VMC): Blender, Unreal, VTuber tools",
    "cameras": "calibrate cameras with a printed board; simulate cameras",
    "evaluate": "measure all methods under the same protocol: errors and time",
    "data": "list and download public recordings",
    "doctor": "report what is installed and missing, and how fast this machine is",
    "warm-up": "compile the numerical code ahead of its first use",
}
"""Command to description, in the order of the help; its `app` is in the module of that name beside this file."""

HELP = """\
Usage: poise COMMAND ...

A few handles in, a natural whole-body pose or motion out.

Commands (see poise COMMAND --help):
{commands}

Options:
  --help, -h  show this
  --version   show the version
  --install-completion  complete commands with the Tab key in this shell
  --overwrite replace existing files that a command writes beside its output
  --debug     show the traceback of an error (POISE_DEBUG=1 does the same)

Examples:
  poise demo                                 see what it does
  poise act walk --style tired -o walk.bvh   a procedural motion
  poise info walk.bvh                        show what is in a file
  poise render walk.bvh -o walk.png          draw it
  poise convert walk.bvh walk.glb            for Blender and game engines
  poise retarget walk.bvh me.glb -o out.glb  on your own character
"""


def sentence(text: str) -> str:
    """Words as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def overview() -> str:
    """The text of `poise --help`."""
    return HELP.format(commands="\n".join(f"  {name:10s}  {what}" for name, what in COMMANDS.items()))
