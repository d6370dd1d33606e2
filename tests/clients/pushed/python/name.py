"""Name of the project of all functions here. Each test writes its own."""

PROJECT = "pushed"
