"""The process around workflows and activities: settings, connection, Workers, telemetry.

It also runs the embedded server.
"""
