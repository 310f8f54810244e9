"""Direct answers: which come from the model's own knowledge."""

import pytest

from temporal_supervisor.supervision.results.recalled import is_recalled

LETTER = "Make this friendlier: Dear Ms Carr, your invoice of 12 March is overdue. Pay 300 euros by Friday."


@pytest.mark.parametrize(
    ("goal", "answer"),
    [
        ("What is the capital of Australia?", "Canberra."),
        ("Name the capital of Australia", "The capital is Canberra."),
        ("How high is Mont Blanc?", "It is 4,806 m high."),
        ("Say how high Mont Blanc is", "4,806 m."),
        ("Why is the sky blue?", "Because short waves are scattered more than long ones."),
        ("Wie heißt der längste Fluss der Welt?", "Das ist der Nil."),
        ("Where do I find the documentation", "At https://docs.example.org/start."),
    ],
)
def test_a_fact_that_the_goal_does_not_give_is_recalled(goal: str, answer: str) -> None:
    assert is_recalled(answer, goal)


@pytest.mark.parametrize(
    ("goal", "answer"),
    [
        ("Hello", "Hello! I can look things up in your files."),
        ("Thank you", "You are welcome."),
        (
            LETTER,
            "Dear Ms Carr, a small reminder: your invoice of 12 March is overdue. Please pay 300 euros by Friday.",
        ),
        ("Can you sort these words? pear, apple, fig", "apple, fig, pear"),
        ("What does this sum to: 12 and 30?", "The sum of 12 and 30: what does this come to"),
    ],
)
def test_greetings_and_texts_that_were_reworked_are_not(goal: str, answer: str) -> None:
    assert not is_recalled(answer, goal)
