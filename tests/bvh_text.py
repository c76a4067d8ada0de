"""BVH text made by hand for tests: a small person with what is under test put in."""

from pathlib import Path

ROOT_CHANNELS = "CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation"
ARM_CHANNELS = "CHANNELS 3 Zrotation Xrotation Yrotation"


def bvh_text(
    *rows: str,
    root: str = ROOT_CHANNELS,
    arm: str = ARM_CHANNELS,
    frames: int | None = None,
    frame_time: str = "0.0333333",
) -> str:
    """A root and one joint with an end site; nine channels unless other ones are given."""
    return (
        "HIERARCHY\nROOT Hips\n{\n\tOFFSET 0 0 0\n"
        f"\t{root}\n"
        "\tJOINT Arm\n\t{\n\t\tOFFSET 0 100 0\n"
        f"\t\t{arm}\n"
        "\t\tEnd Site\n\t\t{\n\t\t\tOFFSET 0 70 0\n\t\t}\n\t}\n}\n"
        f"MOTION\nFrames: {len(rows) if frames is None else frames}\nFrame Time: {frame_time}\n"
        + "".join(f"{row}\n" for row in rows)
    )


def saved(folder: Path, text: str | bytes, name: str = "clip.bvh") -> Path:
    """The text as a file."""
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file
