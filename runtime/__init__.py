"""The process around workflows and activities: settings, connection, Workers, tracing, the embedded server.

Everything here runs before or around workflows and activities, never inside them.
"""
