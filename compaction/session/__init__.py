"""Sessions: conversations over many turns, whose edits stay in force, and what happens in them as typed events."""

from .events import CacheBroken as CacheBroken
from .events import Compacted as Compacted
from .events import Compacting as Compacting
from .events import Event as Event
from .events import Evicted as Evicted
from .events import HostChanged as HostChanged
from .events import LittleSaved as LittleSaved
from .events import NearLimit as NearLimit
from .events import OnEvent as OnEvent
from .events import Overflowed as Overflowed
from .events import SaveFailed as SaveFailed
from .events import SummaryFailed as SummaryFailed
from .events import Veto as Veto
from .session import CompactionSession as CompactionSession
from .session import SessionStatus as SessionStatus
from .turns import TurnLock as TurnLock
