"""What is taken for a credential, and what is not.

Keys are made here, so that nobody who scans the repository takes them for real ones.
"""

import base64
import json
import string
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from app.credentials import find_credential

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
dice = Random(7)


def random_text(length: int, alphabet: str = LETTERS) -> str:
    return "".join(dice.choice(alphabet) for _ in range(length))


def encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def lines_of_a_key(count: int = 12) -> str:
    return "\n".join(random_text(64, LETTERS + "+/") for _ in range(count))


JWT = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded({'sub': '12'})}.{random_text(43)}"
CREDENTIALS = {
    "AWS id": f"aws key AKIA{random_text(16, string.ascii_uppercase)}",
    "AWS secret": f"aws_secret_access_key = {random_text(40, LETTERS + '/+')}",
    "GitHub": f"- GitHub token: ghp_{random_text(36)}",
    "GitHub, fine-grained": f"use github_pat_{random_text(22)}_{random_text(59)} to push",
    "GitLab": f"glpat-{random_text(20)}",
    "Slack": f"slack xoxb-{random_text(12, string.digits)}-{random_text(24)}",
    "Slack hook": f"https://hooks.slack.com/services/T{random_text(9)}/B{random_text(9)}/{random_text(24)}",
    "OpenAI": f"sk-{random_text(20)}T3BlbkFJ{random_text(20)}",
    "OpenAI of a project": f"OPENAI_API_KEY=sk-proj-{random_text(74)}T3BlbkFJ{random_text(74)}",
    "Anthropic": f"sk-ant-api03-{random_text(93)}AA",
    "Google": f"the key AIza{random_text(35)}",
    "Hugging Face": f"`hf_{random_text(34, string.ascii_letters)}`",
    "Weights & Biases": f"WANDB_API_KEY={random_text(40, HEX)}",
    "Stripe": f"sk_live_{random_text(24)}",
    "npm": f"npm_{random_text(36)}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{random_text(90)}",
    "RSA key": f"-----BEGIN RSA PRIVATE KEY-----\n{lines_of_a_key()}\n-----END RSA",
    "OpenSSH key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines_of_a_key()}",
    "encrypted key": f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{lines_of_a_key(4)}",
    "JWT": f"Authorization: Bearer {JWT}",
    "bearer": f"Authorization: Bearer {random_text(40)}",
    "node token": f"lnt_{random_text(43)}",
    "database": "postgresql://lineage:s3cr3tPa55w0rd@db.internal:5432/lineage",
    "remote": "clone from https://ada:Tr0ub4dor-3xK@git.example.org/repo.git",
    "quoted": 'password = "hunter2isnotsafe"',
    "quoted word": "db_password: 'correcthorsebatterystaple'",
    "bare": "password: tr0ub4dor&3",
    "bare, and more": "- Password: hunter2 (rotate it)",
    "in an environment": f"export SECRET_KEY={random_text(50)}",
    "API key": f"api_key: {random_text(32, HEX)}",
    "bold": f"- **API key**: `{random_text(40)}`",
    "at the end of long prose": f"{'All is well with run twelve. ' * 300}ghp_{random_text(36)}",
    "among Japanese": f"鍵は ghp_{random_text(36)} である。",
}
NOTES = {
    "sha256": f"weights sha256:{random_text(64, HEX)}",
    "digest": f"digest: {random_text(64, HEX)}",
    "commit": f"commit {random_text(40, HEX)} fixed it, see also {random_text(7, HEX)}",
    "UUID": "run 3f2b8c1a-9d4e-4f6a-8b2c-1d3e5f7a9b0c diverged",
    "image": f"ghcr.io/lab/model@sha256:{random_text(64, HEX)}",
    "base64 word": "the header is aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3Q= in base64",
    "tokens": "Each token costs 2 ms; 4096 tokens, pad token id 50256, eos_token: <|endoftext|>.",
    "model": 'tokenizer = "meta-llama/Llama-3.1-8B-Instruct-GPTQ-INT4-128g"',
    "vault": "password: see the vault",
    "person": "Password: ask Ada (room 2.014)",
    "prose": "The password is in the vault under lab/db.",
    "patience": "The secret is patience: 12 runs.",
    "no secret": "secret: none needed",
    "from the environment": "api_key: read from the environment",
    "setting": "API key: set LINEAGE_API_KEYS in .env",
    "variable": "password=${POSTGRES_PASSWORD}",
    "placeholder": "Authorization: Bearer <API key or node token>",
    "call": 'api_key = os.environ["OPENAI_API_KEY2"]',
    "path": "private_key: keys/deploy/id_ed25519",
    "hyperparameters": "lr=3e-4, weight_decay=0.01, seed=42, key_dim=64, password_min = 8",
    "attention": "attention keys: 12 heads, value_dim=64",
    "table's key": "primary key: (checkpoint_id, id), sort_key: created_at_desc",
    "paper": "https://arxiv.org/abs/1706.03762v7?context=cs.LG#S3, doi:10.1038/s41586-021-03819-2",
    "file": "https://zenodo.org/record/1234567/files/ImageNet-100_Subset_v2.1-Preprocessed.tar.gz",
    "deep path": "/data/experiments/locatering/checkpoints/2026-11-30/exp1_fast/model-epoch12.pt",
    "source": "transformers/blob/main/src/transformers/models/llama/modeling_llama.py#L123",
    "class": "AutoModelForSequenceClassification.from_pretrained, TrainingArguments",
    "addresses": "http://127.0.0.1:8000/docs and postgresql://db:5432/lineage, 203.0.113.7:8080",
    "mail": "mail ada@example.org: meeting at 10:30; git@github.com:lab/locatering.git",
    "Japanese": "パスワードは金庫を見ること。学習率は0.001が最適だった。" * 8,
    "table": "| run | loss | key |\n| --- | --- | --- |\n| a1 | 0.29 | fast |",
    "code": "```python\nkey = jax.random.PRNGKey(0)\nsecret_santa = names[3]\n```",
    "entry": "entry 01a22b886b6ede7e7370b922 of exp1.run_2026-11-30T08-18-10_seed42",
    "reference": "See archival: projects/locatering",
    "protein": "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV",
    "hashing": "passwords are hashed with argon2id (m=64MB, t=3)",
    "policy": "auth: bearer tokens, rotated weekly; client secret kept in Vault",
    "public key": "-----BEGIN PUBLIC KEY-----",
    "nothing": "",
}


@pytest.mark.parametrize("text", CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_likely_credential_is_found(text: str) -> None:
    assert find_credential(text)


@pytest.mark.parametrize("text", NOTES.values(), ids=NOTES)
def test_an_ordinary_note_holds_none(text: str) -> None:
    assert find_credential(text) is None


def test_a_credential_among_many_notes_is_found() -> None:
    assert find_credential("\n\n".join((*NOTES.values(), CREDENTIALS["GitHub"]))) == "GitHub Token"


@pytest.mark.parametrize("text", CREDENTIALS.values(), ids=CREDENTIALS)
def test_what_it_is_called_repeats_nothing_of_it(text: str) -> None:
    kind = find_credential(text)

    assert kind is not None
    assert kind not in text
    assert text not in kind


def test_a_text_made_to_be_slow_is_read_in_time() -> None:
    # Unguarded, each of the first two takes minutes, and the time limit of a test ends it.
    for text in ("password" * 4096, f"password{' ' * 32_000}x", f"{' ' * 32_000}=", "'\"" * 16_000):
        assert find_credential(text) is None


def test_many_threads_may_ask_at_once() -> None:
    texts = [*CREDENTIALS.values(), *NOTES.values()] * 4
    alone = [find_credential(text) for text in texts]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(find_credential, texts)) == alone


def test_a_line_that_is_known_already_is_not_looked_at() -> None:
    known = "rate 3e-4\r\napi_key = 4f9a8b7c6d5e4f3a2b1c\n"

    assert find_credential(f"- moved\n{known}") is not None
    assert find_credential(f"- moved\n{known}", known=known) is None
    assert find_credential(f"{known}password: hunter2hunter2", known=known) is not None
