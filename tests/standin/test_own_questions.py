"""Thirty questions on files of one's own: answered exactly, or refused in words; none beside the point.

The files are real ones of several forms, read by the product's tools; the prompts are the product's own.
"""

import json

import pytest

from tests.standin.asking import Asked

FILES = {
    "orders.csv": """Order No,Day,Region,Product,Quantity,Revenue EUR
1001,2025-01-14,East,Kettle,10,250.00
1002,2025-01-20,West,Toaster,4,160.00
1003,2025-02-03,East,Toaster,6,240.00
1004,2025-02-17,West,Kettle,12,300.00
1005,2025-03-05,East,Kettle,8,200.00
1006,2025-03-21,North,Blender,3,210.00
1007,2025-03-28,West,Blender,5,350.00
""",
    "staff.csv": """Name;Department;Office;Salary;Joined
Ruth Baum;Accounts;Oslo;4.100,50;14.02.2019
Igor Hahn;Sales;Bergen;3.950,00;01.07.2021
Mina Lund;Sales;Oslo;4.500,25;23.11.2017
Paul Voss;Stores;Bergen;3.300,75;30.05.2023
""",
    "parts.json": json.dumps(
        [
            {"Part": "Cable", "Shelf": "A1", "Stock": 140, "Unit Price": 2.5},
            {"Part": "Fuse", "Shelf": "A2", "Stock": None, "Unit Price": 0.4},
            {"Part": "Heater", "Shelf": "B1", "Stock": 12, "Unit Price": None},
            {"Part": "Switch", "Shelf": "B1", "Stock": 65, "Unit Price": 1.75},
        ]
    ),
    "handbook.md": """# Handbook of the repair shop

## Opening hours

The shop opens at 8:30 on weekdays. On Saturdays the shop is closed.

## Warranty

The warranty on kettles covers two years. Blenders made before May 2024 were recalled because a seal could melt.
The maker pays for each recalled blender.

## Contacts

Mina Lund handles complaints of customers. Invoices go to Ruth Baum.
""",
}
# Each question that the stand-in can answer, with the words that the answer must have.
ANSWERED = {
    "What is the salary of Mina Lund?": ["4500.25"],
    "Which department is Igor Hahn in?": ["Sales"],
    "How many orders are there?": ["Order No: 7."],
    "How many orders did we have in March 2025?": ["(2025-03): 3."],
    "What is the total revenue?": ["1710"],
    "What is the total revenue in the East in January 2025?": ["250", "East"],
    "Which region has the highest total revenue?": ["West, 810"],
    "Which product has the lowest total quantity?": ["Blender, 8"],
    "Who has the highest salary?": ["4500.25", "Mina Lund"],
    "List all parts.": ["Cable, Fuse, Heater, Switch"],
    "Which regions are there?": ["East, North, West"],
    "What is the revenue by region?": ["East: 690", "North: 210", "West: 810"],
    "What is the total quantity per month?": ["2025-01: 14", "2025-02: 18", "2025-03: 16"],
    "How did revenue change from January to March 2025?": ["410", "760", "350"],
    "What is the average salary in Oslo?": ["4300.375"],
    "How many parts have no stock?": ["Part (without Stock): 1."],
    "What is the unit price of Heater?": ["no value"],
    "When does the shop open on weekdays?": ["8:30"],
    "Who handles complaints of customers?": ["Mina Lund handles complaints"],
    "Why were blenders recalled?": ["because a seal could melt"],
}
REFUSED = [
    "Should we stop selling toasters?",
    "Summarise the handbook in two sentences.",
    "Plot revenue by month.",
    "Why did revenue fall in February?",
    "What will the revenue be next year?",
    "Is Paul Voss paid fairly?",
    "Which product has the best margin?",
    "What share of revenue comes from kettles?",
    "Translate the opening hours into German.",
    "Which customers complained most about toasters?",
]


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return await Asked.about(FILES, tmp_path_factory.mktemp("shop"))


def test_there_are_thirty_questions() -> None:
    assert len(ANSWERED) + len(REFUSED) == 30


@pytest.mark.parametrize("question", ANSWERED)
async def test_what_the_files_say_is_answered_exactly_and_once(shop: Asked, question: str) -> None:
    (answer,) = await shop.answers(question)
    assert [words for words in ANSWERED[question] if words not in answer] == [], answer


@pytest.mark.parametrize("question", REFUSED)
async def test_what_takes_a_model_is_refused_in_words(shop: Asked, question: str) -> None:
    assert await shop.answers(question) == []
