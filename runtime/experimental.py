"""The parts of temporalio that are marked experimental, and nothing else: a new version is checked here."""

from opentelemetry.trace import TracerProvider
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.worker import CustomSlotSupplier

__all__ = ["CustomSlotSupplier", "OpenTelemetryPlugin", "TracerProvider", "create_tracer_provider"]
