"""The model of the cases inside the Worker's process: a call costs no HTTP, which would be half of a case's time.

Replies come from the same scripts, errors go through the project's own classification, and the calls are in the same
ledger as those of the model server: see `ScriptedModel`.
"""

import time
from types import SimpleNamespace
from urllib.parse import unquote

from activities.model.anthropic_model import AnthropicModel
from activities.model.call_errors import classify
from activities.model.journalled_call import CALL_HEADER
from activities.model.port import ModelMessage, ModelRequest, ModelUsage, StreamProgress
from activities.model.stream import check_message
from temporal_supervisor.standin.server.api_reply import ApiReply, ErrorReply
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.trust import NO_CREDENTIALS
from temporal_supervisor.supervision.contract.base import Model
from tests.scripted_model import Call, ScriptedModel, step_of


class APIStatusError(Exception):
    """An error reply as the provider's SDK raises it: known to the classification by its name."""

    def __init__(self, reply: ErrorReply) -> None:
        super().__init__(reply.message)
        self.status_code = reply.status
        self.type, self.error_code, self.api_message = reply.type, None, reply.message
        self.response = SimpleNamespace(headers=dict(reply.headers))
        self.body: JsonObject = {}
        self.request_id: str | None = None


class QuickModel(AnthropicModel):
    """An endpoint that asks the scripts of a ScriptedModel directly."""

    def __init__(self, scripted: ScriptedModel) -> None:
        super().__init__()
        self.scripted = scripted

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Returns the script's reply. A call that is cancelled counts as aborted."""
        body = {"messages": request.messages, "model": request.model, "system": request.system}
        call = Call(step_of(unquote(request.headers[CALL_HEADER]), body, {}), time.time())
        try:
            reply = await self.scripted.reply_to(call)
        except ErrorReply as error:
            call.answered_at = time.time()
            raise classify(APIStatusError(error), model=request.model) from None
        except BaseException:
            call.aborted_at = time.time()
            raise
        call.answered_at = time.time()
        progress.usage = ModelUsage.model_validate(reply.usage)
        progress.on_content()
        return check_message(self._message(request, reply), NO_CREDENTIALS)

    def _message(self, request: ModelRequest, reply: ApiReply) -> ModelMessage:
        return ModelMessage(
            content=reply.content,
            stop_reason=reply.stop_reason,
            stop_details=reply.stop_details,
            usage=ModelUsage.model_validate(reply.usage),
            model=request.model,
        )

    def output_schema(self, model: type[Model]) -> JsonObject:
        """Returns a schema without content: the scripts know what to reply."""
        return {"type": "object", "title": model.__name__}
