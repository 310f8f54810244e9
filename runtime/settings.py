"""Settings of a process: `SUPERVISOR_*` variables or `.env`, and the provider's own variables."""

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from runtime.paths import cache_dir

BUILTIN_TEAMS = Path(__file__).resolve().parent.parent / "teams"


class Settings(BaseSettings):
    """Read once by a main and handed on; nothing else reads the environment."""

    model_config = SettingsConfigDict(env_prefix="SUPERVISOR_", env_file=".env", extra="ignore")

    artifacts_url: str = Field(default_factory=lambda: str(cache_dir() / "artifacts"))
    """Where content lives: a folder, or an s3://, gs:// or az:// URL. All Workers and clients need the same."""
    teams_dir: Path | None = None
    """A folder with more teams, one folder with a team.toml each; looked in before the bundled ones."""
    model: Literal["", "standin"] = ""
    """`standin` lets a Worker use the stand-in model; anything else must come from ANTHROPIC_*."""
    model_rpm: float | None = Field(default=None, gt=0)
    """Requests per minute of the whole model queue, over all Workers; None is no limit."""
    model_tpm: int | None = Field(default=None, gt=0)
    """Tokens per minute of this process's model calls, those read from the cache not counted; None is no limit."""
    model_structured: Literal["format", "forced_tool", "tool", "text"] = "format"
    """How the endpoint is asked for JSON."""
    model_cache: bool = True
    """Prompt caching; off for endpoints that refuse `cache_control`."""
    model_idle_seconds: float | None = Field(default=None, gt=0)
    """No content for this long ends an attempt of a call; None is the project's default."""
    model_plain_http: bool = False
    """Whether the key may go to another machine over plain http; on loopback it always may."""
    call_header: Literal["on", "off"] = "on"
    """Whether requests carry `x-supervisor-call`."""
    supervisor_model: str = "claude-opus-5-5"
    worker_model: str = "claude-haiku-5-5"

    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias=AliasChoices("ANTHROPIC_API_KEY"))
    anthropic_auth_token: SecretStr | None = Field(default=None, validation_alias=AliasChoices("ANTHROPIC_AUTH_TOKEN"))
    anthropic_base_url: str | None = Field(default=None, validation_alias=AliasChoices("ANTHROPIC_BASE_URL"))

    @property
    def has_model(self) -> bool:
        """Whether anything says which model endpoint to use."""
        return bool(self.secret("anthropic_api_key") or self.secret("anthropic_auth_token") or self.anthropic_base_url)

    def secret(self, name: Literal["anthropic_api_key", "anthropic_auth_token"]) -> str | None:
        """The value of a secret setting; an empty one counts as missing."""
        value: SecretStr | None = getattr(self, name)
        return (value.get_secret_value().strip() or None) if value else None

    @property
    def teams_folders(self) -> list[Path]:
        """The folders that hold teams, first wins."""
        return ([self.teams_dir] if self.teams_dir else []) + [BUILTIN_TEAMS]
