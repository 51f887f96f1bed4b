"""Images, sounds and files of one wire format, written in another."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from compaction.formats.base import MessageFormat
from compaction.formats.gemini.fields import field
from compaction.formats.wire import fields_of, string

_SOUNDS: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {mime: name for name, mime in _SOUNDS.items()}
_BEDROCK: Final[Mapping[str, Mapping[str, str]]] = {
    "image": {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")},
    "video": {name: f"video/{name}" for name in ("mp4", "webm", "mpeg")},
    "audio": {**_SOUNDS, "flac": "audio/flac", "ogg": "audio/ogg"},
    "document": {"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown"},
}
"""The names of media formats in Bedrock's blocks, and their MIME types."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
"""The characters that Bedrock refuses in the name of a document."""


@attrs.frozen
class MediaSource:
    """The content of media, in any format.

    Args:
        mime: Its type, such as ``"image/png"``; empty if unknown.
        data: The data in base64; empty if there is an address.
        url: The address; empty if there is data.
        name: The file's name, if it has one.
        detail: The provider's option for the resolution of an image.
    """

    mime: str = ""
    data: str = ""
    url: str = ""
    name: str = ""
    detail: str = ""


def read_media(raw: Any) -> MediaSource | None:
    """Return the content of a media part, or ``None`` if it is unknown, as for an id in a provider's store."""
    fields = fields_of(raw) or {}
    fields = fields_of(fields.get("guardContent")) or fields
    for name, types in _BEDROCK.items():
        if (body := fields_of(fields.get(name))) is not None and "source" in body:
            return _of_bedrock(body, types)
    for name in ("inlineData", "fileData"):
        if (body := fields_of(field(fields, name))) is not None:
            return _of_gemini(body)
    if (source := fields_of(fields.get("source"))) is not None:
        return _of_anthropic(source)
    if (sound := fields_of(fields.get("input_audio"))) is not None:
        return MediaSource(_SOUNDS.get(string(sound.get("format")), ""), string(sound.get("data")))
    body = fields_of(fields.get("file")) or fields
    name, detail = string(body.get("filename")), string(fields.get("detail"))
    image = fields.get("image_url")
    if (inner := fields_of(image)) is not None:
        image, detail = inner.get("url"), string(inner.get("detail"))
    for value in (image, body.get("file_data"), body.get("file_url")):
        if isinstance(value, str) and value:
            return attrs.evolve(_of_url(value), name=name, detail=detail)
    return None


def _of_gemini(body: Mapping[str, Any]) -> MediaSource:
    data = body.get("data")
    text = base64.b64encode(data).decode() if isinstance(data, bytes) else string(data)
    return MediaSource(
        string(field(body, "mimeType")), text, string(field(body, "fileUri")), string(field(body, "displayName"))
    )


def _of_bedrock(body: Mapping[str, Any], types: Mapping[str, str]) -> MediaSource | None:
    data = (fields_of(body.get("source")) or {}).get("bytes")
    text = base64.b64encode(data).decode() if isinstance(data, bytes | bytearray) else string(data)
    return MediaSource(types.get(string(body.get("format")), ""), text, name=string(body.get("name"))) if text else None


def _of_anthropic(source: Mapping[str, Any]) -> MediaSource | None:
    if source.get("type") == "url":
        return MediaSource(url=string(source.get("url")))
    if source.get("type") == "base64":
        return MediaSource(string(source.get("media_type")), string(source.get("data")))
    return None


def _of_url(url: str) -> MediaSource:
    """Return the data of a ``data:`` address, or any other address unchanged."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma:
        return MediaSource(url=url) if "://" in url[:16] else MediaSource(data=url)
    return MediaSource(head.removeprefix("data:").removesuffix(";base64"), data)


def write_media(kind: str, source: MediaSource, target: MessageFormat) -> dict[str, Any] | None:
    """Return the media as a part of the target format, or ``None`` if it has no such part."""
    if target.name == "gemini":
        return _for_gemini(source)
    if target.name == "anthropic":
        return _for_anthropic(kind, source)
    if target.name == "bedrock":
        return _for_bedrock(source)
    address = source.url or f"data:{source.mime or 'application/octet-stream'};base64,{source.data}"
    if kind == "image":
        detail = {"detail": source.detail} if source.detail else {}
        if target.name == "openai-chat":
            return {"type": "image_url", "image_url": {"url": address, **detail}}
        return {"type": "input_image", "image_url": address, **detail}
    if kind == "audio" and target.name == "openai-chat" and source.data and source.mime in _FORMATS:
        return {"type": "input_audio", "input_audio": {"data": source.data, "format": _FORMATS[source.mime]}}
    if kind != "file" or (source.url and target.name == "openai-chat"):
        return None
    if source.url:
        return {"type": "input_file", "file_url": source.url}
    body = {"filename": source.name or "file", "file_data": address}
    return {"type": "file", "file": body} if target.name == "openai-chat" else {"type": "input_file", **body}


def _for_gemini(source: MediaSource) -> dict[str, Any] | None:
    if source.data:
        return {"inlineData": {"mimeType": source.mime, "data": source.data}} if source.mime else None
    return {"fileData": {"fileUri": source.url, **({"mimeType": source.mime} if source.mime else {})}}


def _for_anthropic(kind: str, source: MediaSource) -> dict[str, Any] | None:
    if kind not in ("image", "file") or (source.data and not source.mime):
        return None
    if kind == "file" and source.data and source.mime != "application/pdf":
        return None
    body = {"type": "base64", "media_type": source.mime, "data": source.data} if source.data else None
    return {"type": "image" if kind == "image" else "document", "source": body or {"type": "url", "url": source.url}}


def _for_bedrock(source: MediaSource) -> dict[str, Any] | None:
    """Return a block with the data as bytes, as boto3 requires."""
    for kind, types in _BEDROCK.items():
        for name, mime in types.items():
            if mime != source.mime or not source.data:
                continue
            try:
                body: dict[str, Any] = {"format": name, "source": {"bytes": base64.b64decode(source.data, validate=True)}}
            except binascii.Error:
                return None
            named = {"name": _NOT_IN_NAMES.sub("-", source.name) or "document"} if kind == "document" else {}
            return {kind: {**named, **body}}
    return None
