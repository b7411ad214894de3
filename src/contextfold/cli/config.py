"""The YAML file of ``--config``: a mapping of ``Policy`` fields, with errors that name file, line and remedy.

What belongs here: finding the line of a setting that does not exist. What does not: whether a value is allowed
(``policy`` says so).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from contextfold.errors import InputError, PolicyError
from contextfold.policy import Policy

if TYPE_CHECKING:
    import yaml


def read_policy(file: str | None, options: Mapping[str, Any]) -> Policy:
    """The policy of a file with the command line's ``options`` over it; that of the options alone without a file.

    Raises what ``read_config`` raises, and ``PolicyError`` for a value that is not allowed.
    """
    if file is None:
        return Policy(**options)
    settings = read_config(file)
    try:
        return Policy(**{**settings, **options})
    except PolicyError as error:
        raise PolicyError(f"with --config {file}: {error}") from None


def read_config(file: str) -> dict[str, Any]:
    """The settings in ``file`` as arguments for ``Policy``. An empty file sets nothing.

    Raises ``InputError`` where the file cannot be read or is no YAML mapping, and ``PolicyError`` where it names a
    setting that does not exist, with its line and the closest name.
    """
    import yaml

    try:
        text = Path(file).read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"--config {file} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--config {file} is not UTF-8 text: byte {error.start:,} cannot be decoded") from error
    except yaml.YAMLError as error:
        raise InputError(f"--config {file} is not YAML: {_place(error)}") from error
    if node is None or values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"--config {file} must be a mapping such as 'trigger: fraction:0.8', not {_kind(values)}")
    _check_names(file, node, Policy, "")
    return values


def _check_names(file: str, node: yaml.Node, model: type[BaseModel], path: str) -> None:
    """Every key of the mapping must be a field of ``model``; the values of sections are looked at likewise."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        name = str(key.value)
        if name not in model.model_fields:
            close = difflib.get_close_matches(name, model.model_fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(model.model_fields)}"
            raise PolicyError(
                f"--config {file}, line {key.start_mark.line + 1}: there is no setting {path + name!r}; {hint}"
            )
        section = _section(model, name)
        if section is not None:
            _check_names(file, value, section, f"{path}{name}.")


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The settings model that a field holds, if it holds one."""
    annotation = model.model_fields[name].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else f"{problem}"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else f"the value {value!r}"
