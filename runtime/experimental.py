"""The parts of temporalio that are marked experimental or not public yet: a new version is checked here."""

from opentelemetry.trace import TracerProvider
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.worker import CustomSlotSupplier
from temporalio.worker._workflow_instance import _WorkflowLogicFlag

__all__ = ["LOGIC_FLAGS", "CustomSlotSupplier", "OpenTelemetryPlugin", "TracerProvider", "create_tracer_provider"]

LOGIC_FLAGS = frozenset({_WorkflowLogicFlag.PROCESS_WORKFLOW_ACTIVATION_JOBS_AS_SINGLE_BATCH})
"""New rules of workflow tasks. The SDK notes them in history, and will follow them by default later."""
