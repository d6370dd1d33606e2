"""Values and errors of user code as JSON."""

import json
import math
import os
import sys

# Upper bound of the JSON of a value.
RESULT_BYTES_MAX = 16 * 1024 * 1024
# Upper bound of the characters of an error's message, and of its traceback.
ERROR_TEXT_MAX = 64 * 1024

OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def encode(value, subject):
    """Returns the JSON text of a value. Raises a TypeError that says why JSON cannot hold it."""
    value = _plain(value)
    _check_top(value, subject)
    try:
        text = _STRICT.encode(value)
    except ValueError as error:
        if "Out of range float" not in str(error):
            raise TypeError(f"the {subject} cannot be JSON: {error}") from None
        # Numbers deep inside that are no numbers become null, as in JavaScript.
        text = _STRICT.encode(_finite(value))
    except TypeError as error:
        raise TypeError(f"the {subject} cannot be JSON: {error}") from None
    except RecursionError:
        raise TypeError(f"the {subject} cannot be JSON: it is nested too deeply") from None
    if len(text) * 4 > RESULT_BYTES_MAX and (length := len(utf8(text))) > RESULT_BYTES_MAX:
        raise ValueError(f"the {subject} has {length} bytes as JSON: at most {RESULT_BYTES_MAX} are valid")
    return text


def utf8(text):
    """Returns the bytes of a text, with unpaired surrogates replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _plain(value):
    """Turns objects that describe themselves, such as scores and models, into what JSON has."""
    for method in ("as_dict", "model_dump"):
        convert = getattr(value, method, None)
        if convert is not None and not isinstance(value, type):
            return convert()
    return value


def _default(value):
    plain = _plain(value)
    if plain is not value:
        return plain
    kind = type(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if "enum" in sys.modules and isinstance(value, sys.modules["enum"].Enum):
        return value.value
    if kind.__module__ == "decimal":
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if kind.__module__ == "uuid":
        return str(value)
    # Arrays and numbers of numpy and its kin.
    for method in ("tolist", "item"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    raise TypeError(f"it holds a value of the type {kind.__qualname__}, which JSON cannot hold")


_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default)


def _check_top(value, subject):
    _check_number(value, f"the {subject}")
    if isinstance(value, dict):
        _check_number(value.get("score"), f"the score of the {subject}")
    elif isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            score = member.get("score") if isinstance(member, dict) else getattr(member, "score", None)
            _check_number(score, f"the score at {index} of the {subject}")


def _check_number(value, subject):
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{subject} is {value}, which JSON cannot hold: a finite number is valid")


def _finite(value):
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return _finite(_default(value))


def describe(error):
    """Returns name, message and traceback of an exception."""
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
        message = f"the function ended its process with code {code}"
    else:
        try:
            message = str(error)
        except Exception as problem:
            message = f"the message of the exception cannot be built: {problem!r}"
    return {"name": type(error).__name__, "message": _cut(message), "stack": _cut(_stack(error))}


def _stack(error):
    import traceback

    described = traceback.TracebackException.from_exception(error)
    for part in _chain(described):
        frames = [frame for frame in part.stack if not _is_own(frame.filename)]
        part.stack = traceback.StackSummary.from_list(frames)
    return "".join(described.format())


def _chain(described):
    """Yields an exception with its causes."""
    seen = [described]
    for part in seen:
        seen += [one for one in (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())) if one]
    return seen


def _is_own(filename):
    return filename.startswith(OWN) or filename.startswith("<frozen importlib")


def _cut(text):
    text = text if len(text) <= ERROR_TEXT_MAX else text[:ERROR_TEXT_MAX] + "…"
    return utf8(text).decode()


def flush_console():
    """Writes what user code printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # User code replaced or closed the stream, or nobody reads it.
            continue
