"""Keep every model call and its reply in one file, and answer from it where no model is asked."""

from demur.recording.cache import recorded as recorded
from demur.recording.file import CallLine as CallLine
from demur.recording.file import ModelLine as ModelLine
from demur.recording.replies import SECONDS as SECONDS
from demur.recording.replies import RecordedChat as RecordedChat
from demur.recording.replies import Recording as Recording
from demur.recording.replies import open_recording as open_recording

__all__: list[str] = []  # the names serve other rooms and demur-research, and are not public
