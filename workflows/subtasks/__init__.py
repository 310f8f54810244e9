"""Subtasks: started when they are ready, tried again, each attempt a child workflow."""
