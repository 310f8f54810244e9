"""The settings of a process: `SUPERVISOR_*` variables or `.env`, and the provider's variables."""

import contextlib
import hashlib
import json
import os
import re
import shlex
import socket
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.trust import require_http, unshared
from temporal_supervisor.supervision.contract.base import matching
from temporal_supervisor.supervision.contract.ceilings import Ceilings, InlineTeams
from temporal_supervisor.supervision.contract.model_choice import OptionalStep, chain_of
from temporal_supervisor.supervision.contract.request import complaint_lines
from temporal_supervisor.supervision.contract.team import GENERAL, Name

if TYPE_CHECKING:
    from temporal_supervisor.runtime.encryption import Keys

ENV_FILE = Path(__file__).resolve().parents[2] / ".env"
"""The file beside the program, read if none is named: a working directory may be another user's."""
RequestPart = Literal[
    "cache_control",
    "effort",
    "eager_input_streaming",
    "server_tools",
    "thinking",
]
_ROOT = "settings"  # before a problem that names its variable itself
_BUILD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MARK_DIGITS = 8  # enough to tell two folders of teams apart
_BUILD_RULE = "1 to 64 letters, digits, dots, hyphens or underscores"
BuildId = Annotated[str, matching(_BUILD_ID, _BUILD_RULE)]
_OWN_FIELDS = frozenset({"model", "messages", "system", "tools", "stream", "max_tokens"})
# An empty one would be the working directory, which may be another user's.
Place = Annotated[Path | None, BeforeValidator(lambda value: value or None)]
Chain = Annotated[list[str], NoDecode, BeforeValidator(chain_of), Field(validate_default=False)]


SecretName = Literal[
    "anthropic_api_key",
    "anthropic_auth_token",
    "mcp_token",
    "codec_token",
    "ui_token",
]


class Settings(BaseSettings):
    """The settings; a main reads them once with `load_settings` and passes them on.

    Nothing else reads the environment.
    """

    model_config = SettingsConfigDict(
        env_prefix="SUPERVISOR_", extra="ignore", env_parse_none_str="none", allow_inf_nan=False
    )

    artifacts_url: str = Field(default_factory=lambda: str(cache_dir() / "artifacts"))
    """The place of content: a folder, or an s3://, gs:// or az:// URL.

    All Workers and clients need the same.
    """
    keys_file: Place = None
    """Keys, a line `name base64` for each; the first one encrypts histories and artifacts."""
    build_id: BuildId | None = None
    """The build of this Worker: runs stay with the build that began them.

    With None any Worker serves any run.
    """
    teams_dir: Place = None
    """A folder of more teams, each a folder with a team.toml; it comes before the bundled ones."""
    team: Name = GENERAL
    """The team of requests that name none."""
    secrets_dir: Place = None
    """A folder of private files, each the value of a secret that a team file names.

    Without a file the environment has the value.
    """
    mcp_memory_mib: int = Field(default=limits.MCP_MEMORY_MIB, ge=128)
    """What an MCP server may hold with all processes that it starts; one that needs more ends."""
    model: Literal["", "standin"] = ""
    """`standin` lets a Worker use the stand-in model; anything else must come from ANTHROPIC_*."""
    max_budget_usd: float | None = Field(default=100.0, gt=0)
    """The US dollars a run may cost at most, whatever its request says; `none` is no ceiling."""
    max_budget_tokens: int | None = Field(default=50_000_000, ge=1)
    """What a run may use at most in tokens; `none` is no ceiling."""
    daily_usd: float | None = Field(default=None, gt=0)
    """What all Workers of the store may spend on a UTC day in US dollars; None is no ceiling."""
    max_parallel: int = Field(default=limits.MAX_PARALLEL, ge=1, le=limits.MAX_PARALLEL)
    """How many worker agents of one run may work at a time."""
    allowed_models: Annotated[list[str], NoDecode] = []
    """Names or patterns such as `claude-haiku-*`, separated by commas; none allows any model."""
    inline_teams: InlineTeams = "same-team"
    """The tools that a team inside a request may combine: none, those of one team file, or any."""
    model_rpm: float | None = Field(default=None, gt=0)
    """Requests per minute over all queues of model calls and all Workers; None is no limit."""
    model_calls: int = Field(default=limits.MODEL_SLOTS, ge=1, le=limits.ACTIVITY_SLOTS)
    """Model calls that this process has in flight, for each queue that it serves."""
    model_structured: Literal["auto", "format", "text"] = "auto"
    """How the endpoint is asked for JSON: with `auto` as it was found to take."""
    model_ask: Literal["on", "off"] = "on"
    """With `off` the endpoint is not asked what it takes: all is as set, or assumed."""
    extra_fields: Annotated[dict[str, JsonValue], NoDecode] = Field(
        {},
        validation_alias="SUPERVISOR_MODEL_EXTRA",
    )
    """Further fields of all requests to the endpoint, as a JSON object.

    Examples are temperature and chat_template_kwargs.
    """
    model_without: Annotated[list[RequestPart], NoDecode] = []
    """Other parts of requests that the endpoint does not take, separated by commas."""
    model_idle_seconds: float = Field(
        default=limits.MODEL_IDLE_TIMEOUT.total_seconds(),
        gt=0,
        le=86_400,
    )
    """No sign of life for this long ends an attempt of a call."""
    model_max_tokens: int | None = Field(default=None, ge=limits.LEAST_OUTPUT_TOKENS)
    """The most that a reply of any model may have; None leaves it to what is known of the model."""
    model_window: Annotated[dict[str, int], NoDecode] = {}
    """Tokens that a model takes at once, with its reply, by name or pattern.

    It is `200000`, or `mine=32768,qwen*=131072`. Models that are not named have the window of the
    price list.
    """
    model_off: Annotated[dict[str, list[OptionalStep]], NoDecode] = {}
    """Steps of a supervisor that are left out.

    They are `review,replan`, or by model `mine=judge,qwen*=review+refine`.
    """
    model_prompts: Literal["auto", "short", "full"] = "auto"
    """The length of prompts and forms; with `auto` models with a small window get short ones."""
    model_plain_http: bool = False
    """True if the key may go to another machine over plain http; on loopback it always may."""
    call_header: Literal["on", "off"] = "on"
    """With `on` requests carry `x-supervisor-call`."""
    notify: SecretStr | None = None
    """The https URL, or the command without a shell, that gets notices.

    A notice is a line of JSON, sent when a run waits for a person or ends.
    """
    log_format: Literal["text", "json"] = "text"
    """Lines of a Worker's log to read, or one JSON object each."""
    mcp_token: SecretStr | None = None
    """The token that clients of `mcp --http` send; without it that is refused."""
    codec_token: SecretStr | None = None
    """The token that the Web UI and the `temporal` CLI send to `codec`.

    Without it each user of that machine may ask it.
    """
    ui_token: SecretStr | None = None
    """The token that readers of `ui` send; on this machine it may be missing."""
    supervisor_model: Chain = ["claude-opus-5-5"]
    worker_model: Chain = ["claude-haiku-5-5"]
    """Each a model, or several as a fallback chain, separated by commas."""

    capture_content: bool = Field(
        default=False,
        validation_alias="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    )
    """True lets spans hold prompts, replies, arguments and outputs of tools."""
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_api_key_file: Place = Field(default=None, validation_alias="ANTHROPIC_API_KEY_FILE")
    """A file that holds the key, so that no environment shows it; ANTHROPIC_API_KEY wins."""
    anthropic_auth_token: SecretStr | None = Field(
        default=None,
        validation_alias="ANTHROPIC_AUTH_TOKEN",
    )
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    @field_validator("allowed_models", "model_without", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return _parts_of(value, ",")

    @field_validator("notify")
    @classmethod
    def _notify(cls, value: SecretStr | None) -> SecretStr | None:
        words = shlex.split(value.get_secret_value()) if value else []
        if not words:
            return None
        is_url = "://" in words[0]
        if is_url and (len(words) > 1 or require_http(words[0], secret=True)):
            raise ValueError("write one https URL (plain http only to this machine), or a command")
        return value

    @field_validator("extra_fields", mode="before")
    @classmethod
    def _extra(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if len(value.encode()) > limits.MODEL_EXTRA_BYTES:
            raise ValueError(f"it has more than {limits.MODEL_EXTRA_BYTES} bytes")
        try:
            fields = json.loads(value or "{}")
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ValueError('write a JSON object, such as {"temperature": 0.2}')
        taken = sorted(fields.keys() & _OWN_FIELDS)
        if taken:
            raise ValueError(f"these fields are the program's own: {', '.join(taken)}")
        return fields

    @field_validator("model_window", mode="before")
    @classmethod
    def _windows(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        windows = {}
        for part in _parts_of(value, ","):
            name, _, tokens = part.rpartition("=")
            windows[name.strip() or "*"] = tokens.strip()
        if not all(tokens.isdigit() and int(tokens) > 0 for tokens in windows.values()):
            forms = "a number of tokens, or name=tokens for each model, separated by commas"
            raise ValueError(f"write {forms}")
        return windows

    @field_validator("model_off", mode="before")
    @classmethod
    def _steps_off(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        off: dict[str, list[str]] = {}
        for part in value.split(","):
            name, _, steps = part.rpartition("=")
            for step in _parts_of(steps, "+"):
                off.setdefault(name.strip() or "*", []).append(step)
        return off

    @cached_property
    def keys(self) -> "Keys | None":
        """The keys of histories and artifacts; None if these are not encrypted.

        Raises ValueError if the key file can't be used.
        """
        from temporal_supervisor.runtime.encryption import read_keys  # few processes encrypt

        return read_keys(self.keys_file) if self.keys_file else None

    @property
    def notice_words(self) -> list[str]:
        """The words of the command for notices, or a single URL; empty without one."""
        return shlex.split(self.notify.get_secret_value()) if self.notify else []

    @property
    def ceilings(self) -> Ceilings:
        """The operator's ceilings for every request."""
        return Ceilings(
            tokens=self.max_budget_tokens,
            usd=self.max_budget_usd,
            max_parallel=self.max_parallel,
            models=self.allowed_models,
            inline_teams=self.inline_teams,
        )

    @model_validator(mode="after")
    def _key_from_file(self) -> "Settings":
        file = self.anthropic_api_key_file
        if file is None or self.secret("anthropic_api_key"):
            return self
        unread = "ANTHROPIC_API_KEY_FILE can't be read"
        try:
            self.anthropic_api_key = SecretStr(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{unread}: {error.strerror}") from None
        except ValueError:
            raise ValueError(f"{unread}: it is no text in UTF-8") from None
        return self

    @property
    def has_model(self) -> bool:
        """True if a key, a token or a URL selects a model endpoint."""
        has_key = self.secret("anthropic_api_key") or self.secret("anthropic_auth_token")
        return bool(has_key or self.anthropic_base_url)

    @property
    def chosen_models(self) -> list[str]:
        """The models in the environment; if there are none, the endpoint's only one is used."""
        chosen = []
        if "supervisor_model" in self.model_fields_set:
            chosen += self.supervisor_model
        if "worker_model" in self.model_fields_set:
            chosen += self.worker_model
        return chosen

    @property
    def asks_endpoint(self) -> bool:
        """True if an endpoint is asked for its abilities.

        Those of the provider itself and of the stand-in are known.
        """
        return bool(self.anthropic_base_url) and self.model != "standin" and self.model_ask == "on"

    def endpoint_options(self) -> dict[str, Any]:
        """Returns the arguments of `AnthropicModel`."""
        paid = self.model != "standin"  # the stand-in needs no key, so it gets none
        return {
            "api_key": self.secret("anthropic_api_key") if paid else None,
            "auth_token": self.secret("anthropic_auth_token") if paid else None,
            "base_url": self.anthropic_base_url,
            "idle_timeout": timedelta(seconds=self.model_idle_seconds),
            "structured": None if self.model_structured == "auto" else self.model_structured,
            "without": self.model_without,
            "max_output": self.model_max_tokens,
            "windows": self.model_window,
            "short_prompts": {"auto": None, "short": True, "full": False}[self.model_prompts],
            "extra": self.extra_fields,
            "free": not paid,
            "plain_http": self.model_plain_http,
        }

    def secret(self, name: SecretName) -> str | None:
        """Returns the value of a secret setting; None if it is missing or empty."""
        value: SecretStr | None = getattr(self, name)
        if value is None:
            return None
        return value.get_secret_value().strip() or None

    @property
    def teams_folders(self) -> list[Path]:
        """The folders with teams; the first one that has a team wins."""
        if self.teams_dir is None:
            return [BUILTIN_TEAMS]
        return [self.teams_dir, BUILTIN_TEAMS]

    @property
    def teams_mark(self) -> str:
        """A word that is equal in two processes only if they read the same team folders."""
        places = [socket.gethostname()]
        for folder in self.teams_folders:
            with contextlib.suppress(OSError):  # then there is none
                found = folder.stat()
                places.append(f"{folder.absolute()} {found.st_dev} {found.st_ino}")
        return hashlib.sha256("\n".join(places).encode()).hexdigest()[:_MARK_DIGITS]


def load_settings(env_file: Path | None = None) -> Settings:
    """Returns the settings: from the environment, then from `env_file` or an existing ENV_FILE.

    Raises ValueError for a wrong value, for a missing file, for a file that others can write to,
    and for a file that would send the environment's key to another URL.
    """
    file = env_file or ENV_FILE
    if not file.is_file():
        if env_file:
            raise ValueError(f"there is no file {env_file}")
        return _read(None)
    unshared(file, file.stat(), os.getuid())
    outer = _read(None)
    settings = _read(file)
    has_key = outer.secret("anthropic_api_key") or outer.secret("anthropic_auth_token")
    if has_key and settings.anthropic_base_url != outer.anthropic_base_url:
        raise ValueError(
            f"ANTHROPIC_BASE_URL is from {file} and the key from the environment: "
            "put both into one place, so that no file sends your key elsewhere"
        )
    return settings


def _parts_of(text: str, between: str) -> list[str]:
    """Returns the parts of a list in a variable, without empty ones."""
    parts = [part.strip() for part in text.split(between)]
    return [part for part in parts if part]


def _read(file: Path | None) -> Settings:
    try:
        return Settings(_env_file=file)
    except ValidationError as error:
        wrong = complaint_lines(error, _ROOT, shown=_place)
    except UnicodeDecodeError:
        wrong = [f"{file} is not UTF-8 text"]
    raise ValueError("; ".join(line.removeprefix(f"{_ROOT}: ") for line in wrong))


def _place(parts: Sequence[str]) -> str:
    """Returns the variable and entry with a fault: `SUPERVISOR_MODEL_WINDOW.mine`."""
    field, *entries = parts
    return ".".join([_variable(field), *entries])


def _variable(field: str) -> str:
    """Returns the variable of a field: its alias, else `SUPERVISOR_` and its name."""
    return f"SUPERVISOR_{field.upper()}" if field in Settings.model_fields else field
