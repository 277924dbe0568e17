"""Write transcripts anew from what is written now: python -m tests.transcripts [NAME...]."""

import sys
import tempfile
from pathlib import Path

from tests.transcripts.playing import FOLDER, play, read, transcripts

if __name__ == "__main__":
    for path in [FOLDER / f"{name}.txt" for name in sys.argv[1:]] or transcripts():
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(str(play(read(path), Path(folder))), encoding="utf-8")
        print(path)  # noqa: T201
