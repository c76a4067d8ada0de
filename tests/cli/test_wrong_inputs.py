"""Forty wrong inputs: each is answered in one line that says what is wrong and what to do, and changes no file."""

from pathlib import Path

import pytest

from cli.conftest import Program

FILES = {
    "notes.txt": b"hello",
    "empty.bvh": b"",
    "broken.bvh": b"HIERARCHY\nROOT Hips\n{\n OFFSET 0 0 x\n}\n",
    "junk.glb": b"glTF" + b"\0" * 40,
    "junk.c3d": b"\0" * 600,
    "junk.poise": b"junk" * 30,
    "photo.jpg": b"not a jpeg",
}
HANDLE = "--handle right_hand=0.3,1.5,0.4 -o p.png"
WRONG = {
    "info nowhere.bvh": "nowhere.bvh does not exist; check its name",
    "info notes.txt": "neither the extension nor the content is of a known format; known: .bvh",
    "info empty.bvh": "empty.bvh: the file is empty; write or download it again",
    "info broken.bvh": "broken.bvh:4: expected a number; got 'x'",
    "info junk.glb": "junk.glb: GLB version 0; expected 2",
    "info junk.c3d": "junk.c3d: not a C3D file",
    "info folder": "folder is a folder; expected a file. Name a file in it",
    "convert walk.bvh walk.xyz": "no file format for the extension '.xyz'; known: .bvh",
    "convert walk.bvh": "--target requires an argument. (see poise convert --help)",
    "render walk.bvh -o walk.doc": "no picture format for the extension '.doc'; valid: .png, .gif, .mp4",
    "act fly -o x.bvh": "no action 'fly'; valid: walk, run",
    "act walk --style happy -o x.bvh": "no style 'happy'; valid: neutral, tired",
    "act walk --seconds -3 -o x.bvh": "length in seconds must be 0.05 to 600 s; got -3",
    "act walk --fps 0 -o x.bvh": "a frame rate must be 10 to 1000 Hz; got 0",
    "pose --handle right_hand=0.3,1.5 -o p.png": "three numbers in metres, such as 0.3,1.2,0.4; got '0.3,1.5'",
    "pose --handle right_hand=a,b,c -o p.png": "three numbers in metres, such as 0.3,1.2,0.4; got 'a,b,c'",
    "pose --handle right_hnd=0.3,1.5,0.4 -o p.png": "no joint or role 'right_hnd'; did you mean right_hand",
    "pose --handle right_hand -o p.png": "write a handle as NAME=x,y,z in metres, such as LeftHand=0.3,1.2,0.4",
    "pose --handel right_hand=1,2,3": "Unknown option: --handel. Did you mean --handle? (see poise pose --help)",
    f"pose nowhere.poise {HANDLE}": "nowhere.poise does not exist; check its name",
    f"pose junk.poise {HANDLE}": "not a model file, or truncated",
    f"pose walk.bvh {HANDLE}": "expected a .poise file from poise learn",
    "learn m.poise": "name the clips to learn from: poise learn walk.poise walk_1.bvh",
    "learn m.poise nowhere.bvh": "nowhere.bvh does not exist",
    "learn m.poise --kind stile walk.bvh": "no kind of model 'stile'; did you mean style?",
    "learn m.poise --clusters 0 walk.bvh": "clusters must be a number of at least 1; got 0",
    "learn walk.bvh walk.bvh": "walk.bvh is not a name for a model file; call it walk.poise",
    "keyframe junk.poise keys.toml": "name the file to write: -o motion.bvh",
    "retarget walk.bvh nowhere.glb -o o.glb": "nowhere.glb does not exist",
    "markers fill junk.c3d -o f.c3d": "junk.c3d: not a C3D file",
    "image photo.jpg -o p.png": "photo.jpg: not a photo that can be read (JPEG, PNG, WebP",
    "video nowhere.mp4 -o v.bvh": "nowhere.mp4 does not exist",
    "video notes.txt -o v.bvh": "notes.txt is not a video that can be read; convert it to MP4",
    "evaluate handels": "no protocol 'handels'; did you mean handles?",
    "evaluate handles --split nowhere": "no split 'nowhere'; valid: performer, walk",
    "evaluate handles --methods magic": "no method 'magic'; valid: ",
    "studio nowhere.poise --no-open": "nowhere.poise does not exist",
    "studio --port 99999 --no-open": "a port is a number from 0 to 65535; got 99999",
    "clean walk.bvh": "--output requires an argument. (see poise clean --help)",
    "poze": "no command 'poze'; did you mean pose?",
}


@pytest.fixture
def folder(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, content in (FILES | {"walk.bvh": walk.read_bytes()}).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_input_is_answered_in_a_line_and_changes_no_file(
    poise: Program, folder: Path, command: str
) -> None:
    before = {path: path.is_dir() or path.read_bytes() for path in folder.iterdir()}
    run = poise(*command.split())
    assert run.code == 2
    assert WRONG[command] in run.err
    assert "Traceback" not in run.err
    assert len(run.err.strip().splitlines()) == 1
    assert {path: path.is_dir() or path.read_bytes() for path in folder.iterdir()} == before


EARLY = {
    "convert nowhere.bvh {}": ".c3d",
    "retarget nowhere.bvh nowhere.glb -o {}": "",
    "clean nowhere.bvh -o {}": "",
    "act fly -o {}": "",
    "pose nowhere.poise --handle head=0,1,0 -o {}": "",
    "keyframe nowhere.toml -o {}": "",
    "edit nowhere.poise nowhere.bvh --handle head --trajectory t.csv -o {}": "",
    "simulate nowhere.poise -o {}": "",
    "animate nowhere.poise nowhere.toml -o {}": "",
    "sample nowhere.poise -o {}": "",
    "markers solve nowhere.c3d -o {}": "",
    "markers fill nowhere.c3d -o {}": ".c3d",
    "perform vmc:0 -o {}": "",
    "video nowhere.mp4 -o {}": "",
    "image nowhere.jpg -o {}": "",
    "fuse nowhere.toml -o {}": "",
    "library export nowhere clip -o {}": "",
}  # commands that write a motion, with an extension of markers where they can write those


@pytest.mark.parametrize("command", EARLY)
def test_the_name_of_the_output_is_checked_before_any_work(
    poise: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    says = {
        "new.fbx": "write new.glb, open it in Blender (File, Import, glTF 2.0) and export FBX from there",
        "new.xyz": "no file format for the extension '.xyz'; known: .",
        "new.blend": "use GLB, which the programs that use .blend files export and import",
        "new.gltf": "Poise writes glTF as one binary file: name it new.glb",
    }
    if not EARLY[command]:
        says["new.c3d"] = "c3d files hold markers, and this is a motion; valid: .bvh"
    if "fill" in command:
        says = {"new.fbx": says["new.fbx"], "new.bvh": "bvh files do not hold markers; valid: .c3d, .trc"}
    for name, words in says.items():
        run = poise(*command.format(name).split())
        assert (run.code, run.out, len(run.err.splitlines())) == (2, "", 1)
        assert words in run.err
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    ["render nowhere.bvh", "character nowhere.glb", "latent nowhere.poise", "perform placement nowhere"],
)
def test_the_name_of_a_picture_is_checked_before_any_work(poise: Program, command: str) -> None:
    run = poise(*command.split(), "-o", "new.doc")
    assert (run.code, run.out) == (2, "")
    assert "no picture format for the extension '.doc'; valid: .png" in run.err


@pytest.mark.parametrize(
    "command",
    ["pose --handle head=0,1,0", "keyframe no.toml", "simulate no.poise", "video no.mp4", "fuse no.toml"],
)
def test_a_character_that_does_not_exist_is_reported_before_any_work(poise: Program, command: str) -> None:
    run = poise(*command.split(), "-o", "new.glb", "--onto", "nobody.glb")
    assert (run.code, run.out) == (2, "")
    assert "nobody.glb does not exist; check its name" in run.err
