"""The process around workflows and activities: settings, connection, Workers, tracing, the embedded server."""
