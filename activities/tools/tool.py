"""The base of all tools under its former name; authors import `temporal_supervisor`."""

from temporal_supervisor.tools import A as A
from temporal_supervisor.tools import Arguments as Arguments
from temporal_supervisor.tools import AskOnce as AskOnce
from temporal_supervisor.tools import Evidence as Evidence
from temporal_supervisor.tools import NewArtifact as NewArtifact
from temporal_supervisor.tools import Tool as Tool
from temporal_supervisor.tools import ToolContext as ToolContext
from temporal_supervisor.tools import ToolMisuse as ToolMisuse
from temporal_supervisor.tools import ToolOutput as ToolOutput
from temporal_supervisor.tools import ToolSource as ToolSource
