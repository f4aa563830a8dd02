"""Random lives of two experiments over HTTP, each answer compared with the plain model's.

Two checkpoints with nodes of the same names grow side by side, so that what leaks between them is
seen. Nothing is told to the model but what the service acknowledged; after every step the counts
must agree, and at the end of a life every entry, byte for byte.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from tests.property.model import (
    OPERATOR,
    Caller,
    Experiment,
    Node,
    cosine,
    instant,
    matches,
    ranked,
    read_refusal,
    spelt_as,
    trace_refusal,
    visible_steps,
    write_refusal,
)
from tests.property.world import Sent, World, accepted, refused
from tests.support.client import Json

# A restart costs as much as a hundred other steps.
STEPS_BETWEEN_RESTARTS = 12
# In a tree that is all sealed, nothing happens any more.
STEPS_BETWEEN_SEALS = 8

WORDS = ("loss", "rate", "warm-up", "batch", "noise", "depth", "seed", "学習率", "café")
# What a careless store would trim, normalise or choke on; all of it has to come back.
ENDINGS = ("", "", "\n", "  ", " cafe\u0301", " 🌲", " %_'\"\\")
METADATA: tuple[Json, ...] = (
    {},
    {"type": "result_summary", "step": 1},
    {"step": 1.0},
    {"step": True},
    {"step": "1"},
    {"z": None, "a": {"x": [1, 1.5, "é"]}},
)
FILTERS: tuple[Json, ...] = ({}, {}, {"step": 1}, {"step": True}, {"step": "1"}, {"z": None})
URL_FILTERS: tuple[Json, ...] = ({}, {}, {"step": "1"}, {"step": "true"}, {"z": "null"})

queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True).map(
    # Sorted: two orders of the same words differ by rounding alone, and no rank can be expected.
    lambda words: " ".join(sorted(words))
)
texts = st.tuples(queries, st.sampled_from(ENDINGS)).map("".join)
drafts = st.fixed_dictionaries({"text": texts, "metadata": st.sampled_from(METADATA)})
batches = st.lists(drafts, min_size=1, max_size=4)
limits = st.integers(1, 8)


class Lives(RuleBasedStateMachine):
    """A machine over one world; see `lives_in`."""

    world: ClassVar[World]

    nodes: Bundle[Node] = Bundle("nodes")
    tokens: Bundle[Caller] = Bundle("tokens")
    answered: Bundle[tuple[Sent, Json]] = Bundle("answered")

    callers = st.one_of(nodes.map(lambda node: node.header), tokens, st.just(OPERATOR))

    def __init__(self) -> None:
        super().__init__()
        self.world.begin_life()
        self.experiments: list[Experiment] = []
        self.since_restart = 0
        self.since_seal = 0

    # Trees

    @initialize(target=nodes)
    def begin(self) -> MultipleResults[Node]:
        return multiple(*[node for side in ("home", "away") for node in self._plant(side)])

    @initialize(target=tokens)
    def give_first_token(self) -> Caller:
        # Runs in any order with `begin`: a node of its own keeps the two apart.
        return self._give_token(self._grow(self._begin("third"), None))

    @rule(target=nodes, parent=nodes, batch=batches)
    def add_node(self, parent: Node, batch: Sequence[Json]) -> Node:
        """A worker begins a node and writes down what it learns."""
        node = self._grow(parent.experiment, parent)
        self._write(node, node.header, batch, single=False, keyed=False)
        return node

    @rule(node=nodes, other=nodes)
    def create_again(self, node: Node, other: Node) -> None:
        """A repeat finds the node; another parent is a conflict."""
        path = f"/checkpoints/{node.experiment.id}/nodes"
        parent = other if other.experiment is node.experiment else node.parent
        body = {"name": node.name} | ({} if parent is None else {"parent": parent.id})
        response = self._send("POST", path, json=body)
        if parent is node.parent:
            assert accepted(response, status=200)["id"] == node.id
        else:
            refused(response, "node-conflict")

    @rule(node=nodes, caller=callers)
    def show_node(self, node: Node, caller: Caller) -> None:
        response = self._send("GET", f"/nodes/{node.id}", caller=caller)
        if slug := read_refusal(node, caller):
            return refused(response, slug)
        shown = accepted(response, status=200)
        assert shown["lineage"] == [above.id for above in node.lineage]
        assert shown["sealed"] is node.sealed
        assert shown["entry_count"] == len(node.entries)
        assert shown["digest"] == node.digest
        return None

    # Writers

    @rule(target=answered, node=nodes, draft=drafts, keyed=st.booleans())
    def write(self, node: Node, draft: Json, *, keyed: bool) -> Any:
        return self._write(node, node.header, [draft], single=True, keyed=keyed)

    @rule(target=answered, node=nodes, caller=callers, draft=drafts, keyed=st.booleans())
    def write_as_anyone(self, node: Node, caller: Caller, draft: Json, *, keyed: bool) -> Any:
        return self._write(node, caller, [draft], single=True, keyed=keyed)

    @rule(target=answered, node=nodes, batch=batches, keyed=st.booleans())
    def write_batch(self, node: Node, batch: Sequence[Json], *, keyed: bool) -> Any:
        return self._write(node, node.header, batch, single=False, keyed=keyed)

    @rule(target=answered, caller=tokens, draft=drafts, keyed=st.booleans())
    def write_with_token(self, caller: Caller, draft: Json, *, keyed: bool) -> Any:
        return self._write(self._node(caller), caller, [draft], single=True, keyed=keyed)

    @rule(repeat=answered)
    def repeat(self, repeat: tuple[Sent, Json]) -> None:
        """A repeated request gets its first answer and stores nothing."""
        sent, first = repeat
        response = self.world.send(sent)
        if slug := write_refusal(self._node(sent.caller), sent.caller, writes_anew=False):
            return refused(response, slug)
        assert same_json(accepted(response, status=201), first)
        assert response.headers["Idempotency-Replayed"] == "true"
        return None

    @rule(repeat=answered, draft=drafts)
    def use_key_for_another_body(self, repeat: tuple[Sent, Json], draft: Json) -> None:
        sent, _ = repeat
        other = {**draft, "text": f"other {draft['text']}"}
        body = {"entries": [other]} if sent.path.endswith("/batch") else other
        response = self.world.send(Sent(sent.caller, sent.method, sent.path, body, key=sent.key))
        slug = write_refusal(self._node(sent.caller), sent.caller, writes_anew=False)
        refused(response, slug or "idempotency-mismatch")

    @rule(target=tokens, node=nodes)
    def give_token(self, node: Node) -> Caller:
        return self._give_token(node)

    @rule(target=tokens, caller=tokens, draft=drafts)
    def overtake(self, caller: Caller, draft: Json) -> Caller:
        """The executor before writes on, since nobody told it."""
        node = self._node(caller)
        newer = self._give_token(node)
        self._write(node, caller, [draft], single=True, keyed=False)
        return newer

    @rule(node=nodes, caller=callers, own=st.booleans())
    def clear(self, node: Node, caller: Caller, *, own: bool) -> None:
        caller = node.header if own else caller
        response = self._send("DELETE", f"/nodes/{node.id}/memory", caller=caller)
        if slug := write_refusal(node, caller):
            return refused(response, slug)
        assert accepted(response, status=200) == {"removed": len(node.entries)}
        node.entries.clear()
        return None

    @precondition(lambda self: self.since_seal >= STEPS_BETWEEN_SEALS)
    @rule(node=nodes, caller=callers)
    def seal(self, node: Node, caller: Caller) -> None:
        response = self._send("POST", f"/nodes/{node.id}/seal", caller=caller)
        slug = None if caller == OPERATOR else write_refusal(node, caller, writes_anew=False)
        if slug:
            return refused(response, slug)
        assert accepted(response, status=200)["sealed"] is True
        node.sealed = True
        self.since_seal = 0
        return None

    # Readers

    @rule(
        node=nodes,
        query=queries,
        limit=limits,
        include_self=st.booleans(),
        places=st.none() | st.sets(st.integers(0, 3), max_size=3),
        wanted=st.sampled_from(FILTERS),
        claims=st.booleans(),
    )
    def search(
        self,
        node: Node,
        query: str,
        limit: int,
        places: set[int] | None,
        wanted: Json,
        *,
        include_self: bool,
        claims: bool,
    ) -> None:
        """Search as the executor or the operator, in all of the reach or in a part of it."""
        reach = [*node.lineage, node] if include_self else node.lineage
        scope = reach
        body: Json = {"query": query, "limit": limit, "include_self": include_self}
        if places is not None:
            scope = [reach[place] for place in sorted(places) if place < len(reach)]
            body["ancestor_ids"] = [inner.id if inner.parent else inner.name for inner in scope]
        response = self._send(
            "POST",
            f"/nodes/{node.id}/memory/search",
            caller=node.header if claims else OPERATOR,
            json=body | {"filter": wanted},
        )
        answer = accepted(response, status=200)
        assert answer["scope"] == [inner.id for inner in scope]
        entries = [entry for inner in scope for entry in inner.entries]
        self._compare_hits(answer, entries, query=query, limit=limit, wanted=wanted)

    @rule(node=nodes, beyond=nodes, include_self=st.booleans())
    def search_beyond(self, node: Node, beyond: Node, *, include_self: bool) -> None:
        """A node outside of the reach is refused by name, and not silently left out."""
        reach = [*node.lineage, node] if include_self else node.lineage
        body = {"query": "loss", "include_self": include_self, "ancestor_ids": [beyond.id]}
        path = f"/nodes/{node.id}/memory/search"
        response = self._send("POST", path, caller=node.header, json=body)
        if beyond not in reach:
            refused(response, "scope-violation")
            assert response.json()["outside"] == [beyond.id]
        else:
            assert accepted(response, status=200)["scope"] == [beyond.id]

    @rule(node=nodes, caller=callers, query=queries, limit=limits)
    def search_as_anyone(self, node: Node, caller: Caller, query: str, limit: int) -> None:
        path = f"/nodes/{node.id}/memory/search"
        response = self._send("POST", path, caller=caller, json={"query": query, "limit": limit})
        if slug := read_refusal(node, caller):
            return refused(response, slug)
        entries = [entry for above in node.lineage for entry in above.entries]
        answer = accepted(response, status=200)
        return self._compare_hits(answer, entries, query=query, limit=limit, wanted={})

    @rule(node=nodes, caller=callers, limit=limits)
    def list_own(self, node: Node, caller: Caller, limit: int) -> None:
        self._compare_list(
            f"/nodes/{node.id}/memory",
            caller,
            {"limit": limit},
            expected=node.entries,
            slug=read_refusal(node, caller),
        )

    @rule(node=nodes, caller=callers, limit=limits, wanted=st.sampled_from(URL_FILTERS))
    def list_inherited(self, node: Node, caller: Caller, limit: int, wanted: Json) -> None:
        self._compare_list(
            f"/nodes/{node.id}/memory/inherited",
            caller,
            {"limit": limit} | {f"metadata.{key}": text for key, text in wanted.items()},
            expected=[
                entry
                for above in node.lineage
                for entry in above.entries
                if spelt_as(entry["metadata"], wanted)
            ],
            slug=read_refusal(node, caller),
        )

    # The trace

    @rule(node=nodes, caller=callers, draft=drafts)
    def write_step(self, node: Node, caller: Caller, draft: Json) -> None:
        self._write_step(node.experiment, caller, draft)

    @rule(node=nodes, caller=callers, limit=limits)
    def list_trace(self, node: Node, caller: Caller, limit: int) -> None:
        self._compare_list(
            f"/checkpoints/{node.experiment.id}/trace",
            caller,
            {"limit": limit},
            expected=visible_steps(node.experiment, caller),
            slug=trace_refusal(node.experiment, caller, writes=False),
        )

    @rule(node=nodes, caller=callers, query=queries, limit=limits, wanted=st.sampled_from(FILTERS))
    def search_trace(
        self, node: Node, caller: Caller, query: str, limit: int, wanted: Json
    ) -> None:
        body = {"query": query, "limit": limit, "filter": wanted}
        path = f"/checkpoints/{node.experiment.id}/trace/search"
        response = self._send("POST", path, caller=caller, json=body)
        if slug := trace_refusal(node.experiment, caller, writes=False):
            return refused(response, slug)
        steps = visible_steps(node.experiment, caller)
        answer = accepted(response, status=200)
        return self._compare_hits(answer, steps, query=query, limit=limit, wanted=wanted)

    # The whole

    @precondition(lambda self: self.since_restart >= STEPS_BETWEEN_RESTARTS)
    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.since_restart = 0

    @invariant()
    def counts_agree(self) -> None:
        self.world.steps += 1
        self.since_restart += 1
        self.since_seal += 1
        for experiment in self.experiments:
            shown = self.world.get(f"/checkpoints/{experiment.id}")
            assert shown["nodes"] == len(experiment.nodes)
            assert shown["entries"] == experiment.entry_count
            assert shown["pending"] == 0

    @invariant()
    def newest_nodes_find_the_best_of_their_lineage(self) -> None:
        for experiment in self.experiments:
            node = experiment.nodes[-1]
            body = {"query": "loss rate", "limit": 3, "include_self": True}
            response = self._send("POST", f"/nodes/{node.id}/memory/search", json=body)
            entries = [entry for inner in [*node.lineage, node] for entry in inner.entries]
            answer = accepted(response, status=200)
            self._compare_hits(answer, entries, query="loss rate", limit=3, wanted={})

    def teardown(self) -> None:
        for experiment in self.experiments:
            steps = self._walk(f"/checkpoints/{experiment.id}/trace")
            assert same_json(steps, experiment.trace)
            for node in experiment.nodes:
                assert same_json(self._walk(f"/nodes/{node.id}/memory"), node.entries)

    # How it is done

    def _send(
        self, method: str, path: str, *, caller: Caller = OPERATOR, json: Json | None = None
    ) -> Any:
        return self.world.send(Sent(caller, method, path, json))

    def _walk(self, path: str) -> list[Json]:
        return self.world.walk(path, caller=OPERATOR, params={})

    def _node(self, caller: Caller) -> Node:
        found = [experiment.find(caller.node) for experiment in self.experiments]
        [node] = filter(None, found)
        return node

    def _begin(self, side: str) -> Experiment:
        # Numbered: Hypothesis seeds every source of chance anew for each life.
        experiment = Experiment(f"{side}-{next(self.world.numbers)}")
        accepted(self._send("POST", "/checkpoints", json={"id": experiment.id}), status=201)
        self.experiments.append(experiment)
        return experiment

    def _plant(self, side: str) -> list[Node]:
        """Begin a tree in which every kind of kinship is, and something to find on each node."""
        root = self._grow(self._begin(side), None)
        left, right = self._grow(root.experiment, root), self._grow(root.experiment, root)
        planted = [root, left, right, self._grow(root.experiment, left)]
        for node in planted:
            draft = {"text": f"loss {node.name} {side}", "metadata": {"step": 1}}
            self._write(node, node.header, [draft], single=True, keyed=False)
            self._write_step(node.experiment, node.header, draft)
        self._write_step(root.experiment, OPERATOR, {"text": "a step of nobody", "metadata": {}})
        return planted

    def _grow(self, experiment: Experiment, parent: Node | None) -> Node:
        node = Node(experiment, f"n{len(experiment.nodes)}", parent)
        body = {"name": node.name} | ({} if parent is None else {"parent": parent.name})
        response = self._send("POST", f"/checkpoints/{experiment.id}/nodes", json=body)
        assert accepted(response, status=201)["id"] == node.id
        experiment.nodes.append(node)
        return node

    def _give_token(self, node: Node) -> Caller:
        response = self._send("POST", f"/nodes/{node.id}/token")
        node.tokens.append(accepted(response, status=201)["token"])
        return Caller(node.id, node.tokens[-1], len(node.tokens))

    def _write(
        self, node: Node, caller: Caller, batch: Sequence[Json], *, single: bool, keyed: bool
    ) -> Any:
        sent = Sent(
            caller,
            "POST",
            f"/nodes/{node.id}/memory" + ("" if single else "/batch"),
            json=batch[0] if single else {"entries": list(batch)},
            key=f"key {next(self.world.numbers)}" if keyed else None,
        )
        response = self.world.send(sent)
        if slug := write_refusal(node, caller):
            refused(response, slug)
            return multiple()
        answer = accepted(response, status=201)
        entries = [answer] if single else answer["items"]
        self._check_accepted(node.experiment, entries, batch, node=node.id)
        node.entries += entries
        return (sent, answer) if keyed else multiple()

    def _write_step(self, experiment: Experiment, caller: Caller, draft: Json) -> None:
        path = f"/checkpoints/{experiment.id}/trace"
        response = self._send("POST", path, caller=caller, json=draft)
        if slug := trace_refusal(experiment, caller, writes=True):
            return refused(response, slug)
        step = accepted(response, status=201)
        self._check_accepted(experiment, [step], [draft], node=caller.node)
        experiment.trace.append(step)
        return None

    def _check_accepted(
        self,
        experiment: Experiment,
        entries: Sequence[Json],
        batch: Sequence[Json],
        *,
        node: str | None,
    ) -> None:
        """Hold what was answered to what was sent, and to an instant of its own."""
        for entry, draft in zip(entries, batch, strict=True):
            assert entry["id"] not in self.world.known_ids
            self.world.known_ids.append(entry["id"])
            assert entry["node"] == node
            assert entry["text"] == draft["text"]
            assert same_json(entry["metadata"], draft["metadata"])
            assert entry["sha256"] == hashlib.sha256(draft["text"].encode()).hexdigest()
            assert entry["indexed"] is True
            assert instant(entry) > experiment.newest
            experiment.newest = instant(entry)

    def _compare_list(
        self,
        path: str,
        caller: Caller,
        params: Json,
        *,
        expected: Sequence[Json],
        slug: str | None,
    ) -> None:
        if slug:
            return refused(self._send("GET", path, caller=caller), slug)
        assert same_json(self.world.walk(path, caller=caller, params=params), expected)
        return None

    def _compare_hits(
        self, answer: Json, entries: Sequence[Json], *, query: str, limit: int, wanted: Json
    ) -> None:
        """Hold a search to a ranking by brute force: which entries, their bytes, their order."""
        entries = [entry for entry in entries if matches(entry["metadata"], wanted)]
        [asked, *vectors] = self.world.vectors([query, *[entry["text"] for entry in entries]])
        scores = [cosine(vector, asked) for vector in vectors]
        best = ranked(entries, scores, limit=limit)
        assert [hit["entry_id"] for hit in answer["results"]] == [entry["id"] for entry in best]
        assert [hit["rank"] for hit in answer["results"]] == list(range(1, len(best) + 1))
        assert answer["pending"] == 0
        for hit, entry in zip(answer["results"], best, strict=True):
            for member in ("node", "text", "metadata", "created_at"):
                assert same_json(hit[member], entry[member])
            score = scores[entries.index(entry)]
            assert abs(hit["score"] - max(0.0, score)) < 1e-6


def same_json(left: object, right: object) -> bool:
    """Compare to the byte: key order, and 1 against 1.0 or true, included."""
    return json.dumps(left) == json.dumps(right)


def lives_in(world: World) -> type[Lives]:
    """Return the machine for one world, which all its examples share."""
    return type("LivesInWorld", (Lives,), {"world": world})
