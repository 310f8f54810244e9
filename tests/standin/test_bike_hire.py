"""Questions to the stand-in in the words of a newcomer: right, or refused; words that are alike answer nothing."""

import pytest

from tests.standin.asking import Asked

FILES = {
    "rentals.csv": """rental_id;start_date;station;bike_type;hours;price_eur
1;03.01.2025;Harbour;City;2;9,00
2;11.01.2025;Museum;Cargo;4;32,00
3;19.02.2025;Harbour;E-bike;3;27,00
4;02.03.2025;Station Road;City;5;22,50
5;14.03.2025;Museum;City;1;4,50
6;30.03.2025;Harbour;Cargo;6;48,00
7;08.04.2025;Harbour;E-bike;2;18,00
8;21.04.2025;Station Road;E-bike;8;72,00
9;05.05.2025;Museum;City;3;13,50
10;17.05.2025;Harbour;City;4;18,00
""",
    "mechanics.csv": """Name,Town,Hourly wage,Started,Certified
Anna Keller,Basel,31.50,2018-04-01,yes
Ben Ortiz,Bern,28.00,2021-09-15,no
Carla Nuno,Basel,33.25,2016-01-10,yes
Dev Rao,Bern,27.40,2023-06-01,
Elif Tan,Zug,30.00,2020-02-20,yes
""",
    "rules.md": """# Rules of the bike hire

## Deposits

A deposit of 150 EUR is taken for each cargo bike. City bikes need no deposit.

## Repairs

Brakes are checked after every 40 hours of use.
E-bikes were withdrawn in February 2025 because their battery lock failed.

## Complaints

Complaints are answered by Elif Tan within three days.
""",
}
# Each question with the words that its answer must have.
ANSWERED = {
    "What is the hourly wage of Carla Nuno?": ["33.25"],
    "When did Ben Ortiz start?": ["2021-09-15"],
    "Where does Dev Rao work?": ["Bern"],
    "Who works in Zug?": ["Elif Tan"],
    "How many rentals were there in April 2025?": ["(2025-04): 2."],
    "How many mechanics are in Bern?": ["Count: 2 rows"],
    "How many mechanics are certified?": ["Count: 3 rows"],
    "How many mechanics have no value for Certified?": ["(without Certified)", "Count: 1 row "],
    "How many different bike types are there?": ["bike type: 3."],
    "How many rentals have more than 5 hours?": [": 2."],
    "What was the total price in May 2025?": ["31.5"],
    "What is the total of hours in the first quarter of 2025?": [": 21."],
    "Which station has the highest total price?": ["Harbour, 120"],
    "Which bike type was rented most often?": ["City, 5"],
    "Which month had the most rentals?": ["2025-03, 3"],
    "Which rental was the most expensive?": ["72", "rental id: 8"],
    "Which rental was the cheapest?": ["4.5", "rental id: 5"],
    "When was the first rental?": ["2025-01-03"],
    "What was the price on 2025-04-21?": ["72"],
    "Which mechanics are certified?": ["Anna Keller", "Carla Nuno", "Elif Tan"],
    "Which mechanics started before 2019?": ["Anna Keller", "Carla Nuno"],
    "Which mechanics work in Zug?": ["Elif Tan", "30"],
    "Total hours by bike type?": ["Cargo: 10", "City: 15", "E-bike: 13"],
    "What is the average hourly wage in Basel?": ["32.375"],
    "How high is the deposit for a cargo bike?": ["150 EUR"],
    "Why were e-bikes withdrawn?": ["battery lock failed"],
    "How often are brakes checked?": ["40 hours"],
    "When are complaints answered?": ["three days"],
}
REFUSED = [
    "Who repairs the brakes?",
    "How many complaints were there?",
    "How often are complaints answered?",
    "Where is the deposit taken?",
    "How much is the deposit for an e-bike?",
    "How many bikes do we have?",
    "How many customers have rentals?",
    "Why does the city bike need no deposit?",
    "Why did Ben Ortiz leave?",
    "When did Carla Nuno leave?",
    "What happened between 2019-2023?",
    "What is the correlation between hours and price?",
]


@pytest.fixture(scope="module")
async def bikes(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return await Asked.about(FILES, tmp_path_factory.mktemp("bikes"))


@pytest.mark.parametrize("question", ANSWERED)
async def test_what_the_files_say_is_answered(bikes: Asked, question: str) -> None:
    (answer,) = await bikes.answers(question)
    assert [words for words in ANSWERED[question] if words not in answer] == [], answer


@pytest.mark.parametrize("question", REFUSED)
async def test_sentences_with_the_same_words_are_no_answer(bikes: Asked, question: str) -> None:
    assert await bikes.answers(question) == []


async def test_after_and_before_leave_out_the_time_itself(bikes: Asked) -> None:
    (answer,) = await bikes.answers("Which mechanics started after 2020?")
    assert "Elif Tan" not in answer
    (answer,) = await bikes.answers("How many rentals were there before March 2025?")
    assert "(before 2025-03): 3." in answer
