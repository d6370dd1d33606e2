"""Functions of user code: loading from inline text or a bundle, and their arguments."""

import os
import sys
import types

# Arguments of scorers. Those that a call does not have are None.
SCORER_ARGUMENTS = ("input", "output", "expected", "metadata", "trace")
# Parameters of a signature that are missing optional arguments rather than mistakes.
OPTIONAL_ARGUMENTS = frozenset((*SCORER_ARGUMENTS, "tags", "id"))
LOGIN_VARIABLES = ("BRAINTRUST_API_KEY", "BRAINTRUST_API_URL", "BRAINTRUST_APP_URL", "BRAINTRUST_ORG_NAME")
VARARGS, VARKEYWORDS = 0x04, 0x08


class Signature:
    """Parameters of a callable, as far as choosing arguments needs them."""

    def __init__(self, function):
        self.is_known = True
        if type(function) is types.FunctionType and not hasattr(function, "__wrapped__"):
            self._read_code(function)
        else:
            self._inspect(function)

    def _read_code(self, function):
        """Reads plain functions without the module `inspect`, which is slow to import."""
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.names = code.co_varnames[:count]
        self.positional_only = code.co_posonlyargcount
        self.has_keywords = bool(code.co_flags & VARKEYWORDS)
        self.has_list = bool(code.co_flags & VARARGS)
        defaults = len(function.__defaults__ or ())
        optional = code.co_varnames[code.co_argcount - defaults : code.co_argcount]
        self.optional = {*optional, *(function.__kwdefaults__ or ())}

    def _inspect(self, function):
        import inspect

        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            self.is_known, parameters = False, ()
        kinds = inspect.Parameter
        named = [one for one in parameters if one.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
        self.names = tuple(one.name for one in named)
        self.positional_only = sum(one.kind is kinds.POSITIONAL_ONLY for one in named)
        self.has_keywords = any(one.kind is kinds.VAR_KEYWORD for one in parameters)
        self.has_list = any(one.kind is kinds.VAR_POSITIONAL for one in parameters)
        self.optional = {one.name for one in named if one.default is not kinds.empty}

    def arguments(self, given, fills_by_position):
        """Chooses among named arguments. Returns positional and named ones.

        Scorers of an evaluator may use any names: the SDK gives them what is left in its order.
        """
        if not self.is_known:
            return (), given
        rest, chosen = dict(given), {}
        for name in self.names:
            if name in rest:
                chosen[name] = rest.pop(name)
            elif name in self.optional:
                continue
            elif name in OPTIONAL_ARGUMENTS:
                chosen[name] = None
            elif fills_by_position and rest:
                chosen[name] = rest.pop(next(iter(rest)))
        positional = tuple(chosen.pop(name) for name in self.names[: self.positional_only] if name in chosen)
        return positional, {**chosen, **rest} if self.has_keywords else chosen


class Target:
    """Handler that calls run, with its evaluator if it is part of one."""

    def __init__(self, handler, evaluator=None):
        if isinstance(handler, type) and any(hasattr(handler, name) for name in ("eval_async", "eval")):
            handler = handler()
        self.evaluator = evaluator
        self.handler = handler
        for name in ("eval_async", "eval"):
            if hasattr(handler, name):
                self.handler = getattr(handler, name)
                break
        if not callable(self.handler):
            raise TypeError("handler is not a function")
        self.signature = Signature(self.handler)


_target = None
_bundle = None
_is_registered = False
_loop = None
_login = None


def load(source):
    """Loads the function that calls run."""
    global _target
    if "bundle" in source:
        _load_bundle(source["bundle"]["path"])
        _target = _locate(source["bundle"]["location"])
        return
    if _target is not None:
        raise RuntimeError("this worker has loaded a function: only another location of its bundle can follow")
    _target = Target(_inline_handler(source["inline"]["code"]))


def _inline_handler(code):
    import linecache

    module = types.ModuleType("handler")
    module.__file__ = "handler.py"
    sys.modules["handler"] = module
    # Tracebacks show lines from here.
    linecache.cache["handler.py"] = (len(code), None, code.splitlines(keepends=True), "handler.py")
    exec(compile(code, "handler.py", "exec", dont_inherit=True), module.__dict__)
    if "handler" not in module.__dict__:
        raise NameError("name 'handler' is not defined", name="handler")
    return module.__dict__["handler"]


def _load_bundle(path):
    global _bundle, _is_registered
    if _bundle == path:
        if not _is_registered:
            raise RuntimeError(f"loading {path} has failed in this worker: only another worker can repeat it")
        return
    if _bundle is not None or _target is not None:
        raise RuntimeError(f"this worker has loaded another function than {path}")
    _bundle = path
    sys.path.insert(0, path)
    os.chdir(path)
    try:
        from braintrust import framework, framework2
    except ModuleNotFoundError as error:
        if error.name != "braintrust":
            raise
        hint = "a bundle has to contain it, or the directory that the setting functions.python_path names"
        raise ModuleNotFoundError(f"No module named 'braintrust': {hint}", name="braintrust") from None
    with framework._set_lazy_load(True):
        import register  # noqa: F401
    _is_registered = True
    # Some versions of the SDK have `global_` as a module, which has to be imported.
    if not hasattr(framework2, "global_"):
        import braintrust.framework2.global_  # noqa: F401


def _locate(location):
    from braintrust import framework, framework2

    (kind, where), *_ = location.items()
    if kind == "function":
        functions = framework2.global_.functions
        if where["index"] >= len(functions):
            count = len(functions)
            raise IndexError(f"the bundle has no function at position {where['index']}: it registers {count}")
        return Target(functions[where["index"]].handler)
    name, evaluators = where["evaluator"], framework._evals.evaluators
    if name not in evaluators:
        names = ", ".join(evaluators) or "none"
        raise LookupError(f"the bundle has no evaluator named {name}: it has {names}")
    evaluator = evaluators[name].evaluator
    if kind == "task":
        return Target(evaluator.task, evaluator)
    members = (evaluator.scores if kind == "scorer" else getattr(evaluator, "classifiers", None)) or []
    if where["index"] >= len(members):
        raise IndexError(f"the evaluator {name} has no {kind} at position {where['index']}: it has {len(members)}")
    return Target(members[where["index"]], evaluator)


def list_evaluators(path):
    """Returns the descriptions of the evaluators of a bundle by name."""
    _load_bundle(path)
    from braintrust import framework, parameters

    serialize = getattr(parameters, "serialize_remote_eval_parameters_container", None)
    serialize = serialize or parameters.parameters_to_json_schema

    def names(members, prefix):
        return [{"name": _name(member, f"{prefix}_{index}")} for index, member in enumerate(members or [])]

    return {
        name: {
            "parameters": serialize(instance.evaluator.parameters) if instance.evaluator.parameters else None,
            "scores": names(instance.evaluator.scores, "scorer"),
            "classifiers": names(getattr(instance.evaluator, "classifiers", None), "classifier"),
        }
        for name, instance in framework._evals.evaluators.items()
    }


def _name(member, fallback):
    if isinstance(member, type) and hasattr(member, "_name"):
        member = member()
    if hasattr(member, "_name"):
        return member._name()
    name = getattr(member, "__name__", None) or type(member).__name__
    return fallback if name == "<lambda>" else name


def call(frame, report, loop_failed):
    """Runs the function. Returns its value, and what a task changed through its hooks."""
    if _target is None:
        raise RuntimeError("this worker has loaded no function")
    sdk = sys.modules.get("braintrust")
    if sdk is None:
        return _invoke(frame, report, loop_failed)
    try:
        if not frame.get("parent"):
            return _invoke(frame, report, loop_failed)
        with sdk.logger.parent_context(frame["parent"]):
            return _invoke(frame, report, loop_failed)
    finally:
        _flush_spans(sdk)


def _flush_spans(sdk):
    """Sends the spans of the SDK. A failure must not fail the call."""
    try:
        sdk.flush()
    except Exception as error:
        print(f"the spans of this call could not be sent: {error}", file=sys.stderr)


def _invoke(frame, report, loop_failed):
    form, given = frame["form"], frame["input"]
    if form == "eval_task":
        return _run_task(frame, report, loop_failed)
    if form == "preprocessor":
        return [_run(lambda span=span: _apply(span, frame), loop_failed) for span in given], None
    if form == "scorer":
        if not isinstance(given, dict):
            raise TypeError('the input of a scorer has to be an object, such as {"input": .., "output": ..}')
        given = {**dict.fromkeys(SCORER_ARGUMENTS), **given, "trace": _trace(frame)}
    elif form != "function":
        raise ValueError(f"unknown form of a call: {form}")
    elif isinstance(given, dict) and frame.get("trace"):
        given = {**given, "trace": _trace(frame)}
    return _run(lambda: _apply(given, frame), loop_failed), None


def _apply(given, frame):
    if isinstance(given, dict):
        is_scorer = frame["form"] == "scorer" and _target.evaluator is not None
        positional, named = _target.signature.arguments(given, is_scorer)
        return _target.handler(*positional, **named)
    if given is None and _target.signature.is_known and not _target.signature.names:
        return _target.handler()
    return _target.handler(given)


def _trace(frame):
    reference = frame.get("trace")
    if not reference and isinstance(frame["input"], dict) and isinstance(frame["input"].get("trace"), dict):
        reference = frame["input"]["trace"].get("trace_ref")
    if not reference:
        return None
    from assay_trace import Trace

    return Trace(reference, frame.get("parent"))


def _run(work, loop_failed):
    """Runs user code, and awaits its value if it is a coroutine or the like."""
    value = work()
    if not hasattr(value, "__await__"):
        return value
    global _loop
    import asyncio

    if _loop is None or _loop.is_closed():
        # One loop for all calls, because clients that user code keeps are bound to it.
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    _loop.set_exception_handler(loop_failed)
    return _loop.run_until_complete(_awaited(value))


async def _awaited(value):
    return await value


def pending_tasks():
    """Counts tasks that still wait in the event loop."""
    if _loop is None or _loop.is_closed():
        return 0
    import asyncio

    return len(asyncio.all_tasks(_loop))


class TaskHooks(dict):
    """Second argument of a task, with the members of the SDK's hooks."""

    def __init__(self, given, parameters, report):
        metadata = given.get("metadata")
        super().__init__(
            metadata={} if metadata is None else metadata,
            expected=given.get("expected"),
            trial_index=given.get("trial_index", 0),
            tags=list(given.get("tags") or []),
        )
        self.parameters = parameters
        self.report_progress = report
        self._span = None

    metadata = property(lambda self: self["metadata"])
    expected = property(lambda self: self["expected"])
    trial_index = property(lambda self: self["trial_index"])

    @property
    def tags(self):
        return self["tags"]

    @tags.setter
    def tags(self, tags):
        self["tags"] = [] if tags is None else list(tags)

    @property
    def cancel_event(self):
        import threading

        if "_cancel_event" not in self.__dict__:
            self._cancel_event = threading.Event()
        return self._cancel_event

    @property
    def span(self):
        """Span of the task, which exists only if the task asks for it."""
        if self._span is None and "braintrust" in sys.modules:
            self._span = sys.modules["braintrust"].start_span(name="task", span_attributes={"type": "task"})
        return self._span

    def end_span(self):
        if self._span is not None:
            self._span.end()

    def meta(self, **info):
        self["metadata"].update(info)


def _run_task(frame, report, loop_failed):
    given = frame.get("hooks") or {}
    hooks = TaskHooks(given, _parameters(given.get("parameters") or {}), report)
    signature = _target.signature
    takes_hooks = len(signature.names) >= 2 or (len(signature.names) < 2 and signature.has_list)
    arguments = (frame["input"], hooks) if takes_hooks else (frame["input"],)
    try:
        value = _run(lambda: _target.handler(*arguments), loop_failed)
    finally:
        hooks.end_span()
    return value, {"metadata": hooks.metadata, "tags": hooks.tags}


def _parameters(given):
    schema = getattr(_target.evaluator, "parameters", None)
    if schema is None:
        return given
    from braintrust.parameters import validate_parameters

    return validate_parameters(given, schema)


def note_login(variables):
    """Notes the credential with which an SDK may log in while it is loaded."""
    global _login
    if _login is None:
        _login = [variables.get(name) for name in LOGIN_VARIABLES]


def refresh_login(variables):
    """Logs the SDK in again, if it has logged in with the credential of an earlier call."""
    global _login
    wanted = [variables.get(name) for name in LOGIN_VARIABLES]
    before, _login = _login, wanted
    sdk = sys.modules.get("braintrust")
    if sdk is None or before is None or before == wanted or not sdk.logger._state.logged_in:
        return
    try:
        sdk.login(force_login=True)
        state = sdk.logger._state
        # The sender of spans keeps its connection otherwise.
        if hasattr(state, "login_replace_api_conn"):
            state.login_replace_api_conn(state.api_conn())
    except Exception as error:
        # Only spans need the login, and they must not fail the call.
        print(f"the SDK could not log in for this call: {error}", file=sys.stderr)
