"""Core memory's references to a note follow it to another name."""

import asyncio
from collections.abc import Mapping

from app.layers.core import Section
from app.layers.movements.bodies import with_reference
from app.layers.movements.state import mention_of, reference_to
from app.lineage.core_memory import CoreMemory
from app.lineage.texts import check_size
from app.memory.core_memory import refuse_credentials, section_texts
from app.memory.services import Services


async def referring_anew(
    services: Services, core: CoreMemory, former: str, ref: str
) -> Mapping[str, str]:
    """Return the blocks that refer to a note, as they say its new ref, by label.

    TooLarge where one has no room for it, CredentialInCore for what the ref would carry there.
    """
    changed = await asyncio.to_thread(_changed, section_texts(core), former, ref)
    for section, text in changed.items():
        check_size(text, max_bytes=services.limits.max_text_bytes, what=section.value)
    await refuse_credentials({section.value: reference_to(ref) for section in changed})
    return {section.block: text for section, text in changed.items()}


def _changed(texts: Mapping[Section, str], former: str, ref: str) -> dict[Section, str]:
    now = {section: _renamed(text, former, ref) for section, text in texts.items()}
    return {section: text for section, text in now.items() if text != texts[section]}


def _renamed(text: str, former: str, ref: str) -> str:
    # Within an item too: another note may get the former ref, and would be referred to there.
    text = mention_of(former).sub(lambda _: reference_to(ref), text)
    return with_reference(text, former, ref)
