"""Files that another file names: whatever a received file says, nothing outside of its folder is opened."""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import poise
from fbx_text import fbx_text
from poise.apps.animate import read_animate_script
from poise.apps.keyframing_script import read_script
from poise.capture.photos import read_views
from poise.errors import ParseError, PoiseError
from poise.formats.named_files import RefusedNameError, named_bytes, named_file
from poise.formats.registry import glb_of_character
from poise.library import Library, build
from poise.performer import act
from poise.vision.sources import VideoSource

RED = b"\x89PNG\r\n\x1a\n" + b"a picture of somebody's passport " * 20
LAYER = '#usda 1.0\n(\n  defaultPrim = "Other"\n)\ndef Xform "Other"\n{\n}\n'
SECONDS = 5.0  # a pipe that is waited for holds a reader for two minutes

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need a POSIX system")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A received folder, and files of somebody else beside it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "passport.png").write_bytes(RED)
    (tmp_path / "secret" / "other.usda").write_text(LAYER)
    made = tmp_path / "received"
    made.mkdir()
    (made / "coat.png").write_bytes(b"\x89PNG\r\n\x1a\n its own")
    return made


# --- the gate ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../secret/passport.png",
        "coat.png/../../secret/passport.png",
        "..\\secret\\passport.png",
        "/etc/passwd",
        "\\\\host\\share\\passport.png",
        "C:\\passport.png",
        "c:passport.png",
        "file:///etc/passwd",
        "http://127.0.0.1/passport.png",
        "",
        ".",
        "..",
        "coat.png\0.txt",
        "a" * 2000,
        "linked.png",
        "door/passport.png",
        "pipe.png",
    ],
)
def test_the_gate_refuses_names_that_lead_elsewhere(folder: Path, name: str) -> None:
    if sys.platform != "win32":
        (folder / "linked.png").symlink_to(folder.parent / "secret" / "passport.png")
        (folder / "door").symlink_to(folder.parent / "secret")
        os.mkfifo(folder / "pipe.png")
    start = time.monotonic()
    with pytest.raises(RefusedNameError):
        named_bytes(folder, name)
    assert time.monotonic() - start < 1.0


def test_the_gate_opens_what_is_beside_or_below(folder: Path) -> None:
    (folder / "maps").mkdir()
    (folder / "maps" / "skin.png").write_bytes(b"skin")
    assert named_bytes(folder, "maps\\skin.png") == named_bytes(folder, "maps/../maps/skin.png") == b"skin"
    assert named_bytes(folder / "maps", "skin.png") == b"skin"
    assert named_file(folder / "maps", "../coat.png", below=folder) == folder.resolve() / "coat.png"
    with pytest.raises(RefusedNameError, match="outside"):
        named_file(folder / "maps", "../coat.png")


def test_the_gate_has_a_limit(folder: Path) -> None:
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(600_000_000)
    with pytest.raises(RefusedNameError, match="at most 500"):
        named_bytes(folder, "huge.bin")


# --- USD -----------------------------------------------------------------------------------------------------------


def _usd(file: Path, *, picture: str = "coat.png", header: str = "", root: str = "") -> Path:
    """A small character whose mesh has a picture, with more text in its header and at its root."""
    walk = act("walk", seconds=0.1, fps=30)
    text = poise.write(walk, file.with_name("plain.usda"), mannequin=False).read_text()
    look = f"""
        def Material "Look" {{
            token outputs:surface.connect = </Character/Look/Surface.outputs:surface>
            def Shader "Surface" {{
                uniform token info:id = "UsdPreviewSurface"
                color3f inputs:diffuseColor.connect = </Character/Look/Picture.outputs:rgb>
                token outputs:surface
            }}
            def Shader "Picture" {{
                uniform token info:id = "UsdUVTexture"
                asset inputs:file = @{picture}@
                float3 outputs:rgb
            }}
        }}
        def Mesh "Coat" (prepend apiSchemas = ["SkelBindingAPI", "MaterialBindingAPI"]) {{
            rel material:binding = </Character/Look>
            rel skel:skeleton = </Character/Skeleton>
            int[] faceVertexCounts = [3]
            int[] faceVertexIndices = [0, 1, 2]
            point3f[] points = [(0, 0, 0), (0.1, 0, 0), (0.1, 0.1, 0)]
            texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1)] (interpolation = "vertex")
            int[] primvars:skel:jointIndices = [0, 0, 0] (elementSize = 1; interpolation = "vertex")
            float[] primvars:skel:jointWeights = [1, 1, 1] (elementSize = 1; interpolation = "vertex")
            matrix4d primvars:skel:geomBindTransform = ((1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1))
        }}
        {root}
    """
    at = text.index("{", text.index('def SkelRoot "Character"')) + 1
    text = text[:at] + look + text[at:]
    file.write_text(text.replace("(\n", f"(\n{header}\n", 1))
    file.with_name("plain.usda").unlink()
    return file


def test_a_usd_character_still_shows_its_own_picture(folder: Path) -> None:
    pytest.importorskip("pxr")
    assert b" its own" in glb_of_character(_usd(folder / "hero.usda"))


@posix
@pytest.mark.parametrize(
    "picture",
    ["../secret/passport.png", "{secret}/passport.png", "linked.png", "door/passport.png", "pipe.png"],
)
def test_a_usd_characters_picture_is_not_read_from_elsewhere(folder: Path, picture: str) -> None:
    pytest.importorskip("pxr")
    secret = folder.parent / "secret"
    (folder / "linked.png").symlink_to(secret / "passport.png")
    (folder / "door").symlink_to(secret)
    os.mkfifo(folder / "pipe.png")
    file = _usd(folder / "hero.usda", picture=picture.format(secret=secret))
    start = time.monotonic()
    assert RED[8:30] not in glb_of_character(file)
    found = poise.read(file)
    assert time.monotonic() - start < 2 * SECONDS
    assert any(word.startswith("not read: ") for word in found.origin.warnings)


@posix
@pytest.mark.parametrize(
    ("header", "root"),
    [
        ("subLayers = [@../secret/other.usda@]", ""),
        ("subLayers = [@{secret}/other.usda@]", ""),
        ("subLayers = [@inner.usda@]", ""),
        ("subLayers = [@door/other.usda@]", ""),
        ("subLayers = [@pipe.usda@]", ""),
        ('expressionVariables = {{ string P = "../secret/other.usda" }}\nsubLayers = [@`"${{P}}"`@]', ""),
        ("", 'def "R" (references = @../secret/other.usda@</Other>) {{ }}'),
        ("", 'def "R" (payload = @{secret}/other.usda@</Other>) {{ }}'),
        ("", 'def "R" (references = @pipe.usda@</Other>) {{ }}'),
        (
            "",
            'def "R" (clips = {{ dictionary default = {{ string templateAssetPath = "../secret/oth#r.usda"\n'
            "double templateStartTime = 1\ndouble templateEndTime = 1\ndouble templateStride = 1\n"
            'string primPath = "/Other" }} }}) {{ }}',
        ),
        (
            "",
            'def "R" (variantSets = "v"\nvariants = {{ string v = "one" }}) {{\n variantSet "v" = {{\n "one" '
            "(references = @{secret}/other.usda@</Other>) {{\n }}\n }}\n }}",
        ),
    ],
)
def test_a_usd_file_is_composed_of_what_is_beside_it(
    folder: Path, header: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pxr")
    from pxr import Usd

    secret = folder.parent / "secret"
    (folder / "door").symlink_to(secret)
    os.mkfifo(folder / "pipe.usda")
    (folder / "inner.usda").write_text("#usda 1.0\n(\n  subLayers = [@../secret/other.usda@]\n)\n")
    file = _usd(folder / "hero.usda", header=header.format(secret=secret), root=root.format(secret=secret))
    start = time.monotonic()
    assert "not read: " in " ".join(poise.read(file).origin.warnings)
    assert time.monotonic() - start < SECONDS

    from poise.formats import named_files

    monkeypatch.setitem(sys.modules, "named_files", named_files)  # as in the child
    from poise.formats.usd_child import _contained

    layers, _ = _contained(str(file.resolve()))
    stage = Usd.Stage.Open(layers[0])
    assert not [one for one in stage.GetUsedLayers() if "secret" in one.identifier]


def test_a_usd_file_may_be_made_of_layers_in_folders_below(folder: Path) -> None:
    pytest.importorskip("pxr")
    (folder / "parts").mkdir()
    _usd(folder / "parts" / "hero.usda", picture="../coat.png")
    (folder / "all.usda").write_text(
        "#usda 1.0\n(\n  metersPerUnit = 1\n  subLayers = [@parts/hero.usda@]\n)\n"
    )
    assert b" its own" in glb_of_character(folder / "all.usda")
    assert not poise.read(folder / "all.usda").origin.warnings


def test_a_package_shows_its_own_picture_and_no_other(folder: Path) -> None:
    pytest.importorskip("pxr")
    from pxr import Sdf, UsdUtils

    file = _usd(folder / "hero.usda")
    assert UsdUtils.CreateNewUsdzPackage(Sdf.AssetPath(str(file)), str(folder / "hero.usdz"))
    assert b" its own" in glb_of_character(folder / "hero.usdz")
    for number, name in enumerate(
        ("../secret/passport.png", f"{folder.parent}/secret/passport.png", "coat.png")
    ):
        package = folder / f"evil{number}.usdz"
        with zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("hero.usda", _usd(folder / "other.usda", picture=name).read_bytes())
        made = glb_of_character(package)
        assert RED[8:30] not in made
        assert b" its own" not in made  # what lies beside the package is not part of it


# --- other formats -------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    "picture",
    ["../secret/passport.png", "..\\\\secret\\\\passport.png", "linked.png", "door/passport.png", "pipe.png"],
)
def test_an_fbx_characters_picture_is_not_read_from_elsewhere(folder: Path, picture: str) -> None:
    pytest.importorskip("ufbx")
    secret = folder.parent / "secret"
    (folder / "linked.png").symlink_to(secret / "passport.png")
    (folder / "door").symlink_to(secret)
    os.mkfifo(folder / "pipe.png")
    file = folder / "hero.fbx"
    for name, shown in (("coat.png", True), (picture, False)):
        file.write_text(fbx_text(mesh=True, picture=name))
        made = glb_of_character(file)
        assert (b" its own" in made) == shown
        assert RED[8:30] not in made


@posix
@pytest.mark.parametrize(
    "uri",
    [
        "../secret/passport.png", "%2e%2e/secret/passport.png", "..%5csecret%5cpassport.png", "{secret}/passport.png",
        "file://{secret}/passport.png", "linked.bin", "door/passport.png", "pipe.bin", "http://127.0.0.1:9/x.bin",
    ],
)  # fmt: skip
def test_a_gltf_files_buffer_is_not_read_from_elsewhere(folder: Path, uri: str) -> None:
    secret = folder.parent / "secret"
    (folder / "linked.bin").symlink_to(secret / "passport.png")
    (folder / "door").symlink_to(secret)
    os.mkfifo(folder / "pipe.bin")
    text = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"name": "a", "skin": 0}],
        "skins": [{"joints": [0], "inverseBindMatrices": 0}],
        "buffers": [{"byteLength": 64, "uri": uri.format(secret=secret)}],
        "bufferViews": [{"buffer": 0, "byteLength": 64}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 1, "type": "MAT4"}],
    }  # fmt: skip
    (folder / "hero.gltf").write_text(json.dumps(text))
    start = time.monotonic()
    with pytest.raises(ParseError, match=r"the buffer .*(beside this file|link|pipe)"):
        poise.read(folder / "hero.gltf")
    assert time.monotonic() - start < SECONDS


def _animation(folder: Path, name: str) -> None:
    script = folder / "script.toml"
    script.write_text(f'duration = 1.0\n[[keyframes]]\ntime = 0.0\nclip = "{name}"\n')
    read_animate_script(script)


def _keyframes(folder: Path, name: str) -> None:
    script = folder / "script.toml"
    script.write_text(f'duration = 1\n[styles]\na = "{name}"\n[[style]]\nname = "a"\n')
    read_script(script)


def _views(folder: Path, name: str) -> None:
    views = folder / "views.toml"
    views.write_text(f'[[views]]\nphoto = "{name}"\ncamera = "coat.png"\n')
    read_views(views)


@posix
@pytest.mark.parametrize(
    "name", ["../secret/passport.png", "{secret}/passport.png", "linked.png", "pipe.png"]
)
@pytest.mark.parametrize("read", [_animation, _keyframes, _views])
def test_scripts_and_views_name_files_beside_them(
    folder: Path, read: Callable[[Path, str], None], name: str
) -> None:
    secret = folder.parent / "secret"
    (folder / "linked.png").symlink_to(secret / "passport.png")
    os.mkfifo(folder / "pipe.png")
    with pytest.raises(ParseError, match=r"beside this file|through a link|a pipe"):
        read(folder, name.format(secret=secret))


@posix
@pytest.mark.parametrize("part", ["catalogue.sqlite", "poses.safetensors", "shards"])
def test_a_librarys_parts_are_no_links(folder: Path, part: str) -> None:
    clip = poise.write(act("walk", seconds=0.3, fps=30), folder / "walk.bvh")
    build(folder / "library", [clip])
    Library.open(folder / "library").poses  # noqa: B018 - assembles them
    own, elsewhere = folder / "library" / part, folder.parent / "secret" / part
    own.rename(elsewhere)
    own.symlink_to(elsewhere)
    with pytest.raises(PoiseError, match="is a link"):
        Library.open(folder / "library").poses  # noqa: B018 - raises


@posix
def test_a_librarys_clip_is_no_link(folder: Path) -> None:
    clip = poise.write(act("walk", seconds=0.3, fps=30), folder / "walk.bvh")
    build(folder / "library", [clip])
    library = Library.open(folder / "library")
    shard = folder / "library" / library.clips[0].shard
    shard.rename(folder.parent / "secret" / "clip")
    shard.symlink_to(folder.parent / "secret" / "clip")
    with pytest.raises(PoiseError, match="is a link"):
        library.motion(library.clips[0].name)


@pytest.mark.parametrize(
    "text",
    ["#EXTM3U\n#EXTINF:1,\n../secret/film.mp4\n", "ffconcat version 1.0\nfile 'film.mp4'\n", "<?xml?><MPD></MPD>",
     "v=0\no=- 0 0 IN IP4 127.0.0.1\n", "\ufeff[playlist]\nFile1=/etc/passwd\n"],
)  # fmt: skip
def test_a_video_is_no_playlist(folder: Path, text: str) -> None:
    pytest.importorskip("cv2")
    (folder / "film.m3u8").write_text(text)
    with pytest.raises(ParseError, match="a playlist, which names other files"):
        VideoSource(folder / "film.m3u8")
