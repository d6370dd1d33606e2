"""An evaluation whose task and scorers were pushed, and one scorer more of its own."""

from braintrust import Eval, init_function
from name import PROJECT

TOLD = "echo: hi (told: be brief)"


def starts(output, expected):
    return 1 if output[0] == expected[0] else 0


Eval(
    PROJECT,
    experiment_name="pushed",
    data=[{"input": {"question": "hi"}, "expected": TOLD}, {"input": {"question": "bye"}, "expected": TOLD}],
    task=init_function(PROJECT, "ask"),
    scores=[init_function(PROJECT, "same-length"), init_function(PROJECT, "words"), starts],
)
