"""Module that the entry modules import: it becomes a part of their bundles."""

import braintrust
from name import PROJECT

project = braintrust.projects.create(name=PROJECT)


def doubled(text):
    return text + text
