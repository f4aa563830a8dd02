"""What stands between this machine and a service that works: looked at, and what to do about it."""

from app.doctor.check import Check, Verdict
from app.doctor.disk import check_folder
from app.doctor.embedding import check_embedder
from app.doctor.ledger import check_ledger
from app.doctor.letta import check_letta

__all__ = ["Check", "Verdict", "check_embedder", "check_folder", "check_ledger", "check_letta"]
