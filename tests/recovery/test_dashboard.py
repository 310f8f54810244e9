"""The dashboard's questions, asked to a Prometheus that a collector fills with the metrics of two Workers."""

import asyncio
import contextlib
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from temporalio.client import Client

from temporal_supervisor import RunRequest, start
from tests.operate.servers import process, program
from tests.postgres import free_port
from tests.recovery.test_tracing import SECRET, _away_once, _played
from tests.scripted_model import ScriptedModel, plan, script
from tests.serving import ROOT, WorkerProcesses
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.subtasks.test_people import asking

PANELS = json.loads((ROOT / "deploy/dashboard.json").read_text(encoding="utf-8"))["panels"]
ASKED = {target["expr"]: panel["title"] for panel in PANELS for target in panel["targets"] if "expr" in target}
COLLECTOR = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{taking}"}}}}}}}}
processors: {{batch: {{timeout: 200ms}}}}
exporters: {{prometheusremotewrite: {{endpoint: "http://127.0.0.1:{asking}/api/v1/write"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], processors: [batch], exporters: [prometheusremotewrite]}}}}
"""


@contextlib.contextmanager
def observing(folder: Path) -> Iterator[tuple[str, str]]:
    """Gives the addresses of a collector and of the Prometheus that it writes to."""
    taking, asking = free_port(), free_port()
    (folder / "collector.yaml").write_text(COLLECTOR.format(taking=taking, asking=asking))
    (folder / "prometheus.yml").write_text("global: {}\n")
    kept = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/kept")
    served = (f"--web.listen-address=127.0.0.1:{asking}", "--web.enable-remote-write-receiver")
    with (
        process(folder / "prometheus.log", program("prometheus"), *kept, *served),
        process(folder / "collector.log", program("collector"), "--config", f"{folder}/collector.yaml"),
    ):
        yield f"http://127.0.0.1:{taking}", f"http://127.0.0.1:{asking}"


def answered(prometheus: str, expression: str) -> dict[str, float]:
    """What Prometheus answers: each value by those of its labels."""
    query = urllib.parse.urlencode({"query": expression})
    with contextlib.suppress(ConnectionError), urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}") as reply:
        found = json.load(reply)["data"]["result"]
        return {" ".join(sorted(one["metric"].values())): float(one["value"][1]) for one in found}
    return {}


async def test_each_panel_of_the_dashboard_shows_what_two_workers_did(
    workers: WorkerProcesses, lone_client: Client, lone_model: ScriptedModel, run_id: str, tmp_path: Path
) -> None:
    with observing(tmp_path) as (collector, prometheus):
        workers.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_METRIC_EXPORT_INTERVAL": "500"}
        workers.environ |= {"ANTHROPIC_API_KEY": "test-key"}
        for _ in range(2):
            await workers.start()
        away, results = _away_once(), []
        for number in range(4):
            name = f"{run_id}-{number}"
            lone_model.play(name, script(plan({"id": "t1"}, {"id": "t2"}), {"t1": _played, "t2": away}))
            request = RunRequest(goal=SECRET, team="lab", max_reviews=0)
            handle = lone_client.get_workflow_handle(await start(lone_client, request, name))
            results.append(await handle.result())
        lone_model.play(run_id, script(plan({"id": "t1", "role": "asker"}), {"t1": asking}))
        waits = lone_client.get_workflow_handle(await start(lone_client, RunRequest(goal="Ask", team="people"), run_id))
        await asked(waits, "t1/1:1.0")
        dollars = sum(result["usage"]["usd"] for result in results)

        async def shown() -> dict[str, dict[str, float]]:
            values: dict[str, dict[str, float]] = {}
            for expression, title in ASKED.items():
                values.setdefault(title, {}).update(await asyncio.to_thread(answered, prometheus, expression))
            return values

        async def all_there() -> bool:
            values = await shown()
            ended, waiting = values["Runs ended in the last hour"], values["Runs that wait"]
            return all(values.values()) and sum(ended.values()) == len(results) and waiting["person"] == 1

        await until(all_there, 60)
        values = await shown()
    assert values["Runs ended in the last hour"] == {"completed": len(results)}
    assert values["Runs that wait"] == {"person": 1, "provider": 0, "paused": 0}
    assert sum(values["Dollars in the last day"].values()) >= dollars - 1e-9
    assert values["Failed calls per minute"] == {"ProviderError": 0.2}  # one in five minutes
    assert values["Retries per minute"] == {"chat": 0.2}
    assert values["Temporal: free slots of Workers"]["ActivityWorker supervisor"] > 1000  # of both
