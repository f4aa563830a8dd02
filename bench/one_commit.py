"""The service without group commit: `python -m bench.one_commit serve` commits each write alone.

All the rest stays as it is (HTTP, embedding, statements, the writer's thread), so what differs
from the service is the gathering and nothing else.
"""

import app.db.writer
from app.cli import main

app.db.writer.MAX_GROUP = 1

if __name__ == "__main__":
    main()
