"""The process around workflows and activities: settings, connection, Workers, telemetry, the embedded server."""
