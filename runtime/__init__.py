"""Setting a process up: settings, the embedded Temporal server, who owns our packages.

Everything here runs before or around workflows and activities, never inside them.
"""
