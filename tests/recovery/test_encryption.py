"""Encrypted runs: no word of them in the server's database or in the store, through a rotation of the keys."""

import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf import json_format
from obstore.store import from_url
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from activities.store.artifacts import ArtifactChanged, ArtifactUnavailable
from activities.store.store_urls import open_store
from temporal_supervisor import RunRequest, new_run_id, start
from temporal_supervisor.console.commands.codec_command import codec_app
from temporal_supervisor.console.commands.doctor import open_keys
from temporal_supervisor.console.run.standstill import observed_standstills
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.encryption import Keys, read_keys
from temporal_supervisor.runtime.payloads import SealedPayloads
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.store_keys import output_key
from tests.operate.servers import temporal_on_postgres
from tests.scripted_model import Reply, Step, answer, plan, script, status, text, tools
from tests.serving import address_of, keys_in, own_server, store_of, worker_processes
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Lab
from tests.workflow.subtasks.test_people import reply

WORD, PLAIN = "quincunx", "harlequin"
OLD, NEW = {"old": bytes(32)}, {"new": bytes(range(32))}


def _play(step: Step) -> Reply:
    """All that a run says has the word: plan, question, tool call, finding, a refused call, the answer."""
    if step.kind == "turn" and step.number == 1:
        return tools(("ask_person", {"question": f"Which {WORD}?"}), ("seek", {"name": f"{WORD} 1"}))
    if step.kind == "turn":
        return text(f"the {WORD} is in the garden\n\nConfidence: 0.8")
    subtask = {"id": "t1", "role": "asker", "description": f"Look for the {WORD} in the garden"}
    return script(plan(subtask), answer_reply=answer(f"The {WORD} is there"))(step)


@dataclass(frozen=True)
class Place:
    """A server and a store; `kept` returns what the server's database holds."""

    address: str
    store: str
    kept: Callable[[], bytes]

    def objects(self) -> list[bytes]:
        """All objects of the store, as they are."""
        url = self.store if "://" in self.store else Path(self.store).as_uri()
        store = from_url(url, client_options={"allow_http": True})
        return [bytes(store.get(item["path"]).bytes()) for batch in store.list() for item in batch]


@pytest.fixture(params=["sqlite and a folder", "postgresql and a bucket"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Where runs are kept: on one machine, and where there are several."""
    folder = tmp_path / "server"
    folder.mkdir()
    if request.param.startswith("postgresql"):
        with temporal_on_postgres(folder) as (address, database):
            yield Place(address, request.getfixturevalue("s3_url"), database.dump)
        return
    (tmp_path / "store").mkdir()
    async with own_server(db=folder / "temporal.db") as client:
        yield Place(
            address_of(client), str(tmp_path / "store"), lambda: b"".join(map(Path.read_bytes, folder.iterdir()))
        )


def _holds(kept: bytes, word: str) -> bool:
    """True if a database has a word as it is, or as a dump writes bytes."""
    return word.encode() in kept or word.encode().hex().encode() in kept


async def test_no_word_of_a_run_is_left_in_plain_text(lone: Lab, place: Place, tmp_path: Path) -> None:
    lone.play(_play)
    file = tmp_path / "keys"
    client = await connect(address=place.address, keys=keys_in(file, **OLD))
    with worker_processes(client, lone.model.url, place.store, tmp_path) as workers:
        workers.environ["SUPERVISOR_KEYS_FILE"] = str(file)
        first = await workers.start()
        request = RunRequest(goal=f"Where is the {WORD}?", team="people", metadata={"word": WORD})
        run_id = await start(client, request, lone.run_id)
        handle = client.get_workflow_handle(run_id)
        await asked(handle, "t1/1:1.0")
        first.kill()
        client = await connect(address=place.address, keys=keys_in(file, **NEW, **OLD))
        await workers.start()
        handle = client.get_workflow_handle(run_id)
        await reply(handle, "t1/1:1.0", f"The {WORD} of 1899")
        result = await handle.result()
        assert (result["status"], result["answer"][:12]) == ("completed", f"The {WORD}"[:12])
        assert sorted(set(lone.steps)) == sorted(lone.steps)
        described = await handle.describe()
        assert await described.static_summary() == f"Where is the {WORD}?"
        history = (await handle.fetch_history()).to_json()
        assert WORD not in history
        with pytest.raises(ArtifactUnavailable, match="SUPERVISOR_KEYS_FILE"):
            await (await store_of(client, place.store)).get(result["result_ref"])
    stranger = await connect(address=place.address)
    await stranger.start_workflow("Unserved", PLAIN, id="plain", task_queue="unserved")
    kept, objects = place.kept(), place.objects()
    assert (_holds(kept, WORD), _holds(kept, PLAIN), _holds(kept, lone.run_id)) == (False, True, True)
    assert objects
    assert not any(WORD.encode() in each for each in objects)
    assert WORD not in new_run_id(client, f"Where is the {WORD}?")


async def test_why_a_call_is_tried_again_is_encrypted_and_shown(lone: Lab, tmp_path: Path) -> None:
    lone.play(lambda step: status(529, "overloaded_error", f"too many {WORD}"))
    file = tmp_path / "keys"
    client = await connect(address=address_of(lone.client), keys=keys_in(file, **OLD))
    with worker_processes(client, lone.model.url, str(tmp_path / "store"), tmp_path) as workers:
        workers.environ["SUPERVISOR_KEYS_FILE"] = str(file)
        await workers.start()
        run = Run(client, await start(client, RunRequest(goal="Look around", team="people"), lone.run_id))
        await until(partial(_says, run, WORD))
        assert not await _says(Run(lone.client, run.id), WORD)


async def _says(run: Run, word: str) -> bool:
    return any(word in cause.text for cause in await observed_standstills(run, await run.describe()))


@pytest.mark.parametrize(("keys", "why"), [(None, "set SUPERVISOR_KEYS_FILE"), (NEW, "with key 'old'")])
async def test_a_request_that_a_worker_can_not_decrypt_ends_typed(
    lone_client: Client, lone: Lab, tmp_path: Path, keys: Any, why: str
) -> None:
    address = address_of(lone_client)
    client = await connect(address=address, keys=keys_in(tmp_path / "sender", **OLD))
    with worker_processes(lone_client, lone.model.url, str(tmp_path / "store"), tmp_path) as workers:
        if keys:
            keys_in(tmp_path / "keys", **keys)
            workers.environ["SUPERVISOR_KEYS_FILE"] = str(tmp_path / "keys")
        await workers.start()
        await start(client, RunRequest(goal=f"Where is the {WORD}?", team="people"), lone.run_id)
        reader = await connect(address=address, keys=keys_in(tmp_path / "all", **OLD, **NEW))
        with pytest.raises(WorkflowFailureError) as caught:
            await reader.get_workflow_handle(lone.run_id).result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "InvalidRequest"
    assert why in caught.value.cause.message


async def test_an_object_that_was_changed_or_moved_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path, "", Keys(OLD))
    kept, other = "run/first/w/turn.1/" + "a" * 64, "run/first/w/turn.2/" + "a" * 64
    await store.create(kept, WORD.encode())
    assert await store.get(kept) == WORD.encode()
    (tmp_path / other).parent.mkdir(parents=True)
    os.link(tmp_path / kept, tmp_path / other)
    with pytest.raises(ArtifactChanged):
        await store.get(other)
    (tmp_path / kept).write_bytes(WORD.encode())
    with pytest.raises(ArtifactChanged, match="not encrypted"):
        await store.get(kept)
    ref = await store.put_output("run", WORD.encode())
    assert ref == output_key("run", ref.rpartition("/")[2])
    assert await open_store(tmp_path, "", Keys({**NEW, **OLD})).get(ref) == WORD.encode()
    with pytest.raises(ArtifactUnavailable, match="key 'old'"):
        await open_store(tmp_path, "", Keys(NEW)).get(ref)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no key"),
        ("# none\n", "holds no key"),
        ("only-a-name\n", "line 1"),
        (f"short {base64.b64encode(bytes(16)).decode()}", "line 1"),
        (f"a {base64.b64encode(bytes(32)).decode()}\na {base64.b64encode(bytes(32)).decode()}", "line 2"),
        (f"{'n' * 33} {base64.b64encode(bytes(32)).decode()}", "line 1"),
        ("a ü\n", "can't be read"),
    ],
)
def test_a_file_that_holds_no_keys_is_named_without_its_contents(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(ValueError, match=why) as caught:
        read_keys(file)
    assert "AAAA" not in str(caught.value)
    with pytest.raises(ValueError, match="can't be read"):
        read_keys(tmp_path / "missing")


async def test_the_codec_server_answers_who_sends_its_token() -> None:
    """Another user of the machine has read ciphertext, and asks the server for what it says."""
    sealed = await SealedPayloads(Keys(OLD)).encode([Payload(metadata={"encoding": b"json/plain"}, data=WORD.encode())])
    body = json_format.MessageToDict(Payloads(payloads=sealed))
    app = codec_app(SealedPayloads(Keys(OLD)), "http://localhost:8233", "t" * 32)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost:8081") as user:
        for headers in ({}, {"authorization": "Bearer "}, {"authorization": "t" * 32}):
            refused = await user.post("/decode", json=body, headers=headers)
            assert refused.status_code == 401
            assert WORD not in refused.text
        opened = await user.post("/decode", json=body, headers={"authorization": f"Bearer {'t' * 32}"})
        assert json_format.ParseDict(opened.json(), Payloads()).payloads[0].data == WORD.encode()


@pytest.mark.parametrize(("mode", "is_named"), [(0o600, False), (0o644, True)])
def test_the_doctor_names_keys_that_others_can_read(tmp_path: Path, mode: int, is_named: bool) -> None:
    file = tmp_path / "keys"
    file.touch()
    file.chmod(mode)
    row = open_keys(Settings(keys_file=file))
    assert (row is not None and row.level == "warning" and f"chmod 600 {file}" in str(row.fix)) is is_named


async def test_the_codec_server_decrypts_for_one_web_ui_on_this_machine() -> None:
    codec, ui = SealedPayloads(Keys(OLD)), "http://localhost:8233"
    transport = httpx2.ASGITransport(app=codec_app(codec, ui))
    plain = Payloads()
    plain.payloads.add(metadata={"encoding": b"json/plain"}, data=json.dumps(WORD).encode())
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8081") as browser:
        sealed = await browser.post("/encode", json=json_format.MessageToDict(plain), headers={"origin": ui})
        assert base64.b64encode(WORD.encode()).decode() not in sealed.text
        opened = await browser.post("/decode", json=sealed.json(), headers={"origin": ui})
        assert json_format.ParseDict(opened.json(), Payloads()) == plain
        assert opened.headers["access-control-allow-origin"] == ui
        as_printed = ui.replace("localhost", "127.0.0.1")  # by `serve`
        opened = await browser.post("/decode", json=sealed.json(), headers={"origin": as_printed})
        assert opened.headers["access-control-allow-origin"] == as_printed
        elsewhere = await browser.post("/decode", json=sealed.json(), headers={"origin": "http://elsewhere.example"})
        assert "access-control-allow-origin" not in elsewhere.headers
        assert (await browser.post("/decode", content=b"{")).status_code == 400
        rebound = await browser.post("/decode", json=sealed.json(), headers={"host": "elsewhere.example"})
        assert rebound.status_code == 400
