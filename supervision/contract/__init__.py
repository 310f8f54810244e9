"""The values that users, other processes and histories see: requests, results, plans, teams, status, updates."""
