"""Measures what the planner needs to know of a machine and its links: a short-lived process, raw timings out."""
