"""Write `web/src/messages.ts` from the definitions in `messages`: `python -m poise.studio.typescript`."""

from __future__ import annotations

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from poise.formats.files import replacing
from poise.studio import messages

TARGET = Path(__file__).parent / "web" / "src" / "messages.ts"
_HEAD = """\
// Generated from src/poise/studio/messages/ by `python -m poise.studio.typescript`; do not edit.
// World: metres, Y up, right-handed; quaternions are w, x, y, z; bytes are little-endian arrays.

"""
_PLAIN = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    bytes: "Uint8Array",
    NoneType: "null",
}


def typescript() -> str:
    """All message types as TypeScript; fields that a page may leave out are optional."""
    sent = _structs(messages.ServerMessage)
    asked = _structs(messages.ClientMessage)
    known = {**asked, **sent}
    parts = [
        f"export const PROTOCOL = {messages.PROTOCOL};\n",
        f'export const CLIPBOARD = "{messages.CLIPBOARD}";\n',
        f'export const LOOK_AT = "{messages.LOOK_AT}";\n',
        f'export const POSES = "{messages.POSES}";\n',
        f"export const EASE = {messages.EASE};\n",
    ]
    parts += [_interface(struct, optional=name not in sent) for name, struct in known.items()]
    for union in ("ClientMessage", "ServerMessage"):
        members = [struct.__name__ for struct in get_args(getattr(messages, union))]
        parts.append(f"export type {union} =\n  | " + "\n  | ".join(members) + ";\n")
    return _HEAD + "\n".join(parts)


def write() -> Path:
    """Update the file on disk."""
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with replacing(TARGET) as file:
        file.write(typescript())
    return TARGET


def _structs(union: Any) -> dict[str, type[msgspec.Struct]]:
    """Every struct in a union of messages, parts before their users."""
    found: dict[str, type[msgspec.Struct]] = {}

    def visit(annotation: Any) -> None:
        is_struct = isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
        if is_struct and annotation.__name__ not in found:
            for hint in get_type_hints(annotation).values():
                visit(hint)
            found[annotation.__name__] = annotation
        for part in get_args(annotation):
            visit(part)

    visit(union)
    return found


def _interface(struct: type[msgspec.Struct], *, optional: bool) -> str:
    summary = (struct.__doc__ or "").strip().split("\n")[0]
    lines = [f"/** {summary} */", f"export interface {struct.__name__} {{"]
    if struct.__struct_config__.tag is not None:
        lines.append(f'  type: "{struct.__struct_config__.tag}";')
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        mark = "?" if optional and not field.required else ""
        lines.append(f"  {field.encode_name}{mark}: {_type(hints[field.name])};")
    return "\n".join([*lines, "}\n"])


def _type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(parts[0])
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in parts)
    if origin in (UnionType, Union):
        return " | ".join(_type(part) for part in parts)
    if origin is list:
        one = _type(parts[0])
        return f"({one})[]" if " | " in one else f"{one}[]"
    if origin is dict:
        return f"Partial<Record<{_type(parts[0])}, {_type(parts[1])}>>"
    if origin is tuple:
        return f"[{', '.join(_type(part) for part in parts)}]"
    return _PLAIN.get(annotation) or annotation.__name__


if __name__ == "__main__":
    print(write())
