"""Likely credentials in a text, by the rules of detect-secrets."""

import re
from collections.abc import Iterator

from detect_secrets.filters import heuristic
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import BasePlugin
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.keyword import (
    CONFIG_DENYLIST_REGEX_TO_GROUP,
    FOLLOWED_BY_QUOTES_AND_SEMICOLON_REGEX,
    QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP,
    KeywordDetector,
)
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

# The choice. Of the detectors that a package brings, this one is pure Python, needs nothing that is
# not here anyway, starts in 0.2 s, and finds passwords as well as keys. Its rules are of 2024, so
# keys of younger providers are found by the last of the three below. (Tried beside it:
# bc-detect-secrets has given up private keys and most forms, CredSweeper brings 300 MB, Kingfisher
# compiles for 4 s and knows no passwords, Betterleaks is a Go runtime for few platforms.) Its
# detectors are asked directly: what is around them keeps settings of the whole process, and sends
# what it finds to providers.
# - Every kind of key that has a form of its own. Left out: public addresses, which are no secrets,
#   and Artifactory, Cloudant and SoftLayer, whose forms are met in plain words.
# - What is assigned to a name like `password`, quoted or not. Not quoted, it may be prose ("see the
#   vault"), so it counts where its first word could be a password: long enough, with a digit.
# - Words as random as a key, for the keys whose form it does not know (Anthropic, Google, Hugging
#   Face, fine-grained GitHub tokens, this service's own): by its measure and limit for base64. No
#   hexadecimal digest reaches it; a long base64 text does, a public key among them.
KNOWN_FORMS: tuple[BasePlugin, ...] = (
    AWSKeyDetector(),
    AzureStorageKeyDetector(),
    BasicAuthDetector(),
    DiscordBotTokenDetector(),
    GitHubTokenDetector(),
    GitLabTokenDetector(),
    IbmCloudIamDetector(),
    IbmCosHmacDetector(),
    JwtTokenDetector(),
    MailchimpDetector(),
    NpmDetector(),
    OpenAIDetector(),
    PrivateKeyDetector(),
    PypiTokenDetector(),
    SendGridDetector(),
    SlackDetector(),
    SquareOAuthDetector(),
    StripeDetector(),
    TelegramBotTokenDetector(),
    TwilioKeyDetector(),
)
KEYWORD = KeywordDetector()
# Without the rule of `key "value";`: it is of no use in prose, and takes a second for a long word.
BARE, QUOTED = (
    {rule: group for rule, group in rules.items() if rule != FOLLOWED_BY_QUOTES_AND_SEMICOLON_REGEX}
    for rules in (CONFIG_DENYLIST_REGEX_TO_GROUP, QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP)
)
RANDOM = Base64HighEntropyString()
ASSIGNED, LOOKS_RANDOM = "password or key", "random token"

SHORTEST_PASSWORD = 6
# What cuts words in paths, addresses and code; a key of any form goes through whole.
WORD = re.compile(r"[\w+-]+", re.ASCII)
# Some of the rules take time by the square of a line's length, and by the cube of a row of blanks.
# Any key fits into the half of a window.
WINDOW = 512


def find_credential(text: str, *, known: str = "") -> str | None:
    """Return what kind of credential the text likely holds; None where it holds none.

    Lines that `known` has too are not looked at: what is there already may be moved about.
    """
    there = set(known.splitlines())
    new = (line for line in text.splitlines() if line not in there)
    return next((kind for line in new for part in _windows(line) for kind in _kinds(part)), None)


def _windows(line: str) -> Iterator[str]:
    line = " ".join(line.split())
    for start in range(0, max(1, len(line) - WINDOW // 2), WINDOW // 2):
        yield line[start : start + WINDOW]


def _kinds(line: str) -> Iterator[str]:
    for detector in KNOWN_FORMS:
        if any(detector.analyze_string(line)):
            yield detector.secret_type
    if _is_assigned(line):
        yield ASSIGNED
    if any(_is_random(word) for word in WORD.findall(line)):
        yield LOOKS_RANDOM


def _is_assigned(line: str) -> bool:
    quoted = KEYWORD.analyze_string(line, QUOTED)
    bare = KEYWORD.analyze_string(line, BARE)
    found = any(not _is_placeholder(value) for value in quoted) or any(map(_is_password, bare))
    return found and not heuristic.is_indirect_reference(line)


def _is_password(value: str) -> bool:
    """Tell whether what follows a name, to the end of the line, begins with a password."""
    word = value.split(maxsplit=1)[0]
    return (
        len(word) >= SHORTEST_PASSWORD
        and any(character.isdigit() for character in word)
        and ("/" not in word or _is_random(word))  # a path, else
        and not _is_placeholder(word)
    )


def _is_placeholder(value: str) -> bool:
    return (
        heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_not_alphanumeric_string(value)
    )


def _is_random(word: str) -> bool:
    return RANDOM.calculate_shannon_entropy(word) > RANDOM.entropy_limit
