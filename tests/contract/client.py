"""Runs the generated Python client against a real server: it records single and many pages, asks for their status, and follows the feed.

Usage: client.py http://HOST:PORT, with the package `doppel_client` on the path, and in DOPPEL_TOKEN a token with the role operate. Made by
deploy/python-client.yml.
"""

import io
import json
import os
import sys

from doppel_client import AuthenticatedClient, Client
from doppel_client.api.advice import explain_pair, get_status, get_statuses, probe_page
from doppel_client.api.feed import export_pages, get_changes
from doppel_client.api.groups import get_group, list_groups, repair_group
from doppel_client.api.operations import flush, get_health, get_metrics, get_readiness
from doppel_client.api.pages import delete_page, record_pages
from doppel_client.api.reports import get_quality
from doppel_client.models import Advice, Page, ProbeRequest, Problem, StatusRequest
from doppel_client.types import File

SITE = "https://client.example/"
TEXT = " ".join(f"word{n}" for n in range(100))


def push(client: AuthenticatedClient, pages: list[dict]) -> tuple[list[dict], object]:
    """Sends pages as JSON lines. Parses the lines of the answer here, because the generated parser expects a single document."""
    lines = "".join(json.dumps(page) + "\n" for page in pages).encode()
    request = record_pages._get_kwargs(body=File(payload=io.BytesIO(lines)))
    response = client.get_httpx_client().request(**request)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()], response.headers


def feed(client: AuthenticatedClient, cursor: str | None) -> tuple[list, str]:
    """All events since a cursor, read in pieces of two."""
    events = []
    while True:
        since = {} if cursor is None else {"cursor": cursor}
        section = get_changes.sync(client=client, limit=2, **since)
        events += section.changes
        cursor = section.cursor
        if section.at_end:
            return events, cursor


def main(address: str) -> None:
    stranger = Client(base_url=address, raise_on_unexpected_status=True)
    refused = get_status.sync(client=stranger, url_query=SITE + "a")
    assert isinstance(refused, Problem) and refused.status == 401, refused
    assert get_health.sync(client=stranger) == "ok\n"
    client = AuthenticatedClient(base_url=address, token=os.environ["DOPPEL_TOKEN"], raise_on_unexpected_status=True)
    assert get_health.sync(client=client) == "ok\n"
    assert get_readiness.sync(client=client) == "ready\n"
    _, start = feed(client, None)

    one = record_pages.sync_detailed(client=client, body=Page(url=SITE + "a", text=TEXT))
    assert one.status_code == 200 and one.parsed.outcome == "pending", one
    assert one.headers["doppel-policy"] == "jaccard:tau=0.8" and one.headers["x-request-id"]
    answers, headers = push(
        client,
        [
            {"url": SITE + "a-copy", "text": TEXT},
            {"url": SITE + "other", "text": " ".join(f"other{n}" for n in range(100))},
            {"url": SITE + "old", "redirect_to": SITE + "a"},
            {"url": SITE + "wrong", "txt": "a field that there is not"},
        ],
    )
    assert [answer.get("outcome") for answer in answers][:2] == ["pending", "pending"], answers
    assert answers[3]["error"]["code"] == "invalid" and answers[3]["line"] == 4, answers
    assert "retry-after" not in headers, headers
    assert flush.sync(client=client, wait=True, timeout=60).done

    copy = get_status.sync(client=client, url_query=SITE + "a-copy")
    assert isinstance(copy, Advice) and copy.status == "duplicate", copy
    assert copy.duplicate_of == SITE + "a" and copy.similarity == 1, copy
    assert copy.fetched_at.tzinfo is not None, copy
    asked = [SITE + "a", SITE + "other", SITE + "old", SITE + "unknown", "no url"]
    pages = get_statuses.sync(client=client, body=StatusRequest(urls=asked)).pages
    assert [str(getattr(page, "status", "bad")) for page in pages] == [
        "winner",
        "unique",
        "duplicate",
        "unknown",
        "bad",
    ], pages
    probed = probe_page.sync(client=client, body=ProbeRequest(text=TEXT, url=SITE + "probe"))
    assert probed.duplicate_of == SITE + "a", probed
    explained = explain_pair.sync(client=client, a=SITE + "a", b=SITE + "other")
    assert explained.duplicate is False and explained.measures.similarity == 0, explained
    group = get_group.sync(copy.group, client=client)
    assert {page.url for page in group.pages} == {SITE + "a", SITE + "a-copy", SITE + "old"}, group
    assert copy.group in [listed.group for listed in list_groups.sync(client=client).groups]
    named = repair_group.sync(copy.group, client=client, dry_run=True, by="client.py")
    assert isinstance(named, Problem) and named.field == "by", named
    repaired = repair_group.sync(copy.group, client=client, dry_run=True)
    assert repaired.applied is False and len(repaired.before) == 2, repaired

    events, cursor = feed(client, start)
    newest = {event.url: str(event.status) for event in events}
    assert newest == {
        SITE + "a": "winner",
        SITE + "a-copy": "duplicate",
        SITE + "other": "unique",
        SITE + "old": "duplicate",
    }, newest
    gone = delete_page.sync(client=client, url_query=SITE + "other")
    assert gone.outcome == "confirmed", gone
    assert flush.sync(client=client, wait=True).done
    events, cursor = feed(client, cursor)
    assert [(event.url, str(event.status)) for event in events] == [(SITE + "other", "dead")], events
    assert feed(client, cursor)[0] == []
    exported = export_pages.sync(client=client).payload.read().splitlines()
    assert len([line for line in exported if json.loads(line)["url"].startswith(SITE)]) == 3, exported

    wrong = get_changes.sync(client=client, cursor="no cursor")
    assert isinstance(wrong, Problem) and wrong.type_ == "urn:doppel:problem:bad-request", wrong
    assert wrong.field == "cursor" and wrong.request_id, wrong
    gone = get_changes.sync(client=client, cursor="0.0")
    assert isinstance(gone, Problem) and gone.status == 410, gone
    missing = get_group.sync("g999999-0", client=client)
    assert isinstance(missing, Problem) and missing.status == 404, missing
    assert get_quality.sync(client=client).counters.live >= 3
    assert get_metrics.sync(client=client).rstrip().endswith("# EOF")
    print("the generated client records pages, asks, and follows the feed")


if __name__ == "__main__":
    main(sys.argv[1])
