"""Putting another exception in the place of one that comes out of native code.

Where JAX's compiled call raises, no function of Python's lies between it and the `except` of its
caller, and nothing of JAX's is asked. But Python tells debuggers and the like of each exception
before it looks for an `except`, and lets them raise another one instead. This is that: public, and
begun when there is something to convert, so that until then it costs nothing.

Since Python 3.12 (PEP 669) one may be told of exceptions alone, in all threads. Before, one is told
of all that a thread does, by `sys.settrace`, which has to be called in that thread; so there only
what fails in the thread that called it is converted.
"""

import atexit
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

# What gives the exception that is to be raised instead, or None.
Find = Callable[[BaseException], BaseException | None]

_NAME = "ecliptic"

# Python sets the others aside for debuggers, coverage, profilers and optimisers.
_TOOLS = (4, 3)

_lock = threading.Lock()

if sys.version_info >= (3, 12):

    def convert(find: Find, caller: FrameType | None) -> None:
        """Has exceptions converted, from now on, in all threads.

        Args:
            find: is asked for each exception in each frame that it passes.
            caller: which frame called what will raise, if that is known. Of no use here.
        """
        monitoring = sys.monitoring
        with _lock:
            users = {tool: monitoring.get_tool(tool) for tool in _TOOLS}
            free = [tool for tool, user in users.items() if user is None]
            if _NAME in users.values() or not free:
                return
            tool = free[0]
            monitoring.use_tool_id(tool, _NAME)
            monitoring.register_callback(tool, monitoring.events.RAISE, _asking(find))
            monitoring.set_events(tool, monitoring.events.RAISE)
            # (What is called while the interpreter takes itself apart finds its globals gone.)
            atexit.register(monitoring.set_events, tool, 0)

    def _asking(find: Find) -> Callable[[Any, int, BaseException], None]:
        def at_raise(code: Any, offset: int, error: BaseException) -> None:
            __tracebackhide__ = True
            instead = find(error)
            if instead is not None:
                raise instead.with_traceback(error.__traceback__)

        return at_raise

else:

    def convert(find: Find, caller: FrameType | None) -> None:
        """Has the exception converted with which native code returns to the frame that called it.

        Args:
            find: is asked for it.
            caller: that frame; or None, if it is none of this thread, and there is nothing to do.
        """
        # (There may be several in one program. Each finds the error of the one that JAX tells of.)
        if caller is not None and not isinstance(caller.f_trace, _AtReturn):
            tracer = _AtReturn(find, sys.gettrace(), caller.f_trace)
            caller.f_trace = tracer
            # (Asked for each new frame, which is not to be traced.)
            sys.settrace(lambda frame, event, arg: None)

    class _AtReturn:
        """What is called when the frame goes on: once. Then the thread is traced as it was before.

        Args:
            find: is asked for the exception.
            thread: what traced the thread.
            local: what traced the frame.
        """

        def __init__(self, find: Find, thread: Any, local: Any) -> None:
            self.find = find
            self.before = (thread, local)

        def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
            __tracebackhide__ = True
            thread, local = self.before
            instead = self.find(arg[1]) if event == "exception" else None
            if instead is None:
                sys.settrace(thread)
                frame.f_trace = local
                return local and local(frame, event, arg)

            def restore(end: Any) -> None:
                _restoring.discard(end)
                sys.settrace(thread)
                frame.f_trace = local

            # Python stops to trace a thread where that raises. The last that it does then is to
            # drop what traced the frame, which is this, if nothing else holds it.
            _restoring.add(weakref.ref(self, restore))
            del self
            raise instead.with_traceback(arg[2])

    _restoring: set[weakref.ref[_AtReturn]] = set()
