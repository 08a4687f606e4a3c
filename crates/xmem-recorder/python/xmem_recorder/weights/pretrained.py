"""Models of transformers that are loaded with their weights."""

import functools
import os

from .. import imports
from . import missing


def watch():
    """Waits for the parts of transformers that read configurations and weights."""
    imports.watch("transformers.configuration_utils", _configurations_imported)
    imports.watch("transformers.modeling_utils", _transformers_imported)


def _transformers_imported(modeling):
    model = getattr(modeling, "PreTrainedModel", None)
    original = vars(model).get("from_pretrained") if model is not None else None
    if not isinstance(original, classmethod):
        return
    function = original.__func__
    # Threads of its own would load, whose memory torch's profiler does not see (transformers,
    # core_model_loading.py, `convert_and_load_state_dict_in_model`).
    os.environ.setdefault("HF_DEACTIVATE_ASYNC_LOAD", "1")

    @functools.wraps(function)
    def from_pretrained(cls, pretrained_model_name_or_path=None, *args, **kwargs):
        name = pretrained_model_name_or_path
        if missing.are_absent():
            # Only then it is needed.
            from . import standins

            name = standins.checkpoint(cls, name, kwargs)
        try:
            loaded = function(cls, name, *args, **kwargs)
        except Exception as error:
            missing.keep_failure(error, name, kwargs)
            raise
        _restore_name(loaded, name, pretrained_model_name_or_path)
        return loaded

    model.from_pretrained = classmethod(from_pretrained)


def _configurations_imported(configurations):
    config = getattr(configurations, "PreTrainedConfig", getattr(configurations, "PretrainedConfig", None))
    original = vars(config).get("get_config_dict") if config is not None else None
    if not isinstance(original, classmethod):
        return
    function = original.__func__

    @functools.wraps(function)
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        try:
            return function(cls, pretrained_model_name_or_path, **kwargs)
        except OSError as error:
            missing.keep_failure(error, pretrained_model_name_or_path, kwargs)
            raise

    config.get_config_dict = classmethod(get_config_dict)


def _restore_name(loaded, name, before):
    """Gives a model from a stand-in the name that the script used."""
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    for owner in (model, getattr(model, "config", None)):
        for attribute in ("name_or_path", "_name_or_path"):
            if name != before and getattr(owner, attribute, None) == name:
                setattr(owner, attribute, str(before))
