"""How words are counted: the one way of the service, the command line and the scripts.

A budget of words bounds what is always in context, so nothing may pass as fewer words than it is:

- Words end at white space of any kind, at dashes longer than a hyphen, and at bars.
- An ideograph or a kana is a word by itself, as word processors count East Asian text.
- Of scripts that are written without spaces (Thai, Lao, Burmese, Khmer), every five letters begun
  are a word: about the length of a Thai word, marks above and below not counted.
- Any other run is one word for every 30 characters begun, more than nearly all words have: a long
  URL counts for what it is.
- What holds no letter, digit or symbol (a rule of a table, a bullet, a heading's mark) is none.
"""

import re
import unicodedata

RUN_LENGTH = 30
UNSPACED_LETTERS = 5

IDEOGRAPHS_AND_KANA = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003fffd"
)
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Zero-width spaces, dashes longer than a hyphen, bars.
SEPARATORS = "\u200b\u2060\ufeff\u2012-\u2015\u2e3a\u2e3b|\u2502\uff5c"
TYPED_DASH = re.compile("-{2,}")
TOKEN = re.compile(
    rf"(?P<ideograph>[{IDEOGRAPHS_AND_KANA}])"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<run>[^\s{SEPARATORS}{IDEOGRAPHS_AND_KANA}{UNSPACED}]+)"
)


def count_words(text: str) -> int:
    """Return how many words the text counts for."""
    return sum(_weight(token) for token in TOKEN.finditer(TYPED_DASH.sub(" ", text)))


def has_words(text: str) -> bool:
    """Tell whether the text counts for a word at least."""
    return any(map(_weight, TOKEN.finditer(TYPED_DASH.sub(" ", text))))


def _weight(token: re.Match[str]) -> int:
    if token["ideograph"]:
        return 1
    if unspaced := token["unspaced"]:
        letters = sum(unicodedata.category(character)[0] == "L" for character in unspaced)
        return -(-letters // UNSPACED_LETTERS)
    run = token["run"]
    return -(-len(run) // RUN_LENGTH) if any(map(_tells, run)) else 0


def _tells(character: str) -> bool:
    """Tell a letter, a digit or a pictograph from punctuation and Markdown's own marks."""
    kind = unicodedata.category(character)[0]
    return kind in "LN" or (kind == "S" and not character.isascii())
