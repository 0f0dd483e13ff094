"""GGUF files: a LoRA merged into one, and what of one says which tokenizer it has.

    merge_gguf(base_file, changes, target)

OpenVINO takes no adapter for a GGUF file (it warns, and changes nothing), so an adapter is merged
into a copy: key-values and untouched tensors stay as they are, and a tensor that changes is written
as Q8_0, 8.5 bits a weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.errors import ResourceError
from mgl.models.shipped import require_space

if TYPE_CHECKING:
    from gguf import GGUFReader

LOADABLE: Final = frozenset({"F16", "F32", "Q4_0", "Q4_1", "Q4_K", "Q6_K", "Q8_0"})
"""Types of tensors that OpenVINO reads; those of other types are written as Q8_0."""

_ROTATED: Final = {"attn_q": "head_count", "attn_k": "head_count_kv"}

Change = NDArray[np.float32]


def merge_gguf(base: Path, changes: Mapping[str, Change], target: Path) -> Path:
    """Write a copy of a GGUF file with changes added to its weights.

    ``changes`` have the names of the modules in transformers (``model.layers.0.mlp.up_proj``) and
    the shapes of their weights. Returns ``target``, which gets its name once it is complete.
    ResourceError where the base lacks a weight that changes, or has another shape, and where the
    disk is full.
    """
    import gguf

    reader = open_gguf(base)
    arch = str(reader.fields["general.architecture"].contents())
    added = dict(_rename(reader, arch, changes))
    shapes = {each.name: tuple(map(int, each.shape[::-1])) for each in reader.tensors}
    for name, change in added.items():
        if shapes.get(name) != change.shape:
            raise ResourceError(
                f"the adapter changes {name} {change.shape}, and {base.name} has it as "
                f"{shapes.get(name)}",
                hint="use the model that it was trained on",
            )
    require_space(target.parent, 2 * base.stat().st_size)
    scratch = target.with_name(f".{target.name}.new")
    writer = gguf.GGUFWriter(scratch, arch)
    try:
        for field in reader.fields.values():
            if field.name != "general.architecture" and not field.name.startswith("GGUF."):
                sub = field.types[-1] if len(field.types) > 1 else None
                writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub)
        for tensor in reader.tensors:
            kind, values = tensor.tensor_type, tensor.data
            if tensor.name in added or kind.name not in LOADABLE:
                dense = gguf.dequantize(values, kind)
                dense = dense + added.get(tensor.name, np.float32(0))
                kind = gguf.GGMLQuantizationType.Q8_0
                values = gguf.quantize(dense, kind)
            writer.add_tensor(tensor.name, values, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    except OSError as error:
        raise ResourceError(
            f"{target} cannot be written: {error.strerror}", hint="make room on that disk"
        ) from error
    finally:
        writer.close()
    return scratch.replace(target)


def make_loadable(weights: Path, target: Path) -> Path | None:
    """Write a copy of a GGUF file that OpenVINO loads, once; None if its types are no trouble.

    Errors as of ``merge_gguf``.
    """
    if target.is_file():
        return target
    if all(tensor.tensor_type.name in LOADABLE for tensor in open_gguf(weights).tensors):
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    return merge_gguf(weights, {}, target)


def read_tokens(path: Path) -> list[str]:
    """Read the vocabulary of a GGUF file, in the order of the tokens' ids."""
    tokens: list[str] = open_gguf(path).fields["tokenizer.ggml.tokens"].contents()
    return tokens


def open_gguf(path: Path) -> GGUFReader:
    """Open a GGUF file to read; ResourceError for a file of another kind."""
    from gguf import GGUFReader

    try:
        return GGUFReader(path)
    except (OSError, ValueError, KeyError) as error:
        raise ResourceError(
            f"{path} is no GGUF file that can be read: {error}", hint="fetch it again"
        ) from error


def _rename(
    reader: GGUFReader, arch: str, changes: Mapping[str, Change]
) -> Iterator[tuple[str, Change]]:
    """Yield the changes as the file names and lays out its tensors.

    Files of the architecture llama hold the rows of query and key interleaved, as rotary embeddings
    pair them there (Su et al., 2021), where transformers holds halves.
    """
    import gguf

    known = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    layers = int(reader.fields[f"{arch}.block_count"].contents())
    names: Any = gguf.get_tensor_name_map(known[arch], layers)
    for module, change in changes.items():
        name = names.get_name(module)
        if name is None:
            raise ResourceError(
                f"the adapter changes {module}, which no model of {arch} has",
                hint="use the model that it was trained on",
            )
        part = _ROTATED.get(name.rpartition(".")[2])
        if arch == "llama" and part is not None:
            heads = int(reader.fields[f"{arch}.attention.{part}"].contents())
            rows, columns = change.shape
            halves = change.reshape(heads, 2, rows // heads // 2, columns)
            change = halves.swapaxes(1, 2).reshape(rows, columns)
        yield f"{name}.weight", change
