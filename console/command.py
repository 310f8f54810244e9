"""Running a command to its exit code, with one sentence for whatever goes wrong."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from temporalio.runtime import Runtime, TelemetryConfig

from console.access import Access
from console.command_errors import explain, sentence, whole_story
from console.terminal import say


@dataclass
class Command:
    """What all commands share: where to connect, and whether to show tracebacks."""

    access: Access = field(default_factory=Access)
    debug: bool = False

    def run(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Does the work; its exit code, or that of the failure after saying it on standard error."""
        _without_core_logs()
        try:
            return asyncio.run(work())
        except (Exception, KeyboardInterrupt) as error:
            failure = explain(error)
            if self.debug:
                say(whole_story(error))
            if failure.message:
                say(f"error: {sentence(failure)}")
            return failure.code
        finally:
            self.access.close()


def _without_core_logs() -> None:
    """The SDK writes its retries on standard error by itself; here they are told in words, or end in a sentence."""
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)), error_if_already_set=False)
