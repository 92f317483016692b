"""Both clients against the real server: pages, questions, groups, the feed and exports."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import doppel
from texts import text

MAY = datetime(2024, 5, 1, 8, tzinfo=UTC)


def pages(site: str, count: int) -> list[doppel.Page]:
    """Pages of which each second is a near-duplicate of the one before."""
    return [
        doppel.Page(url=f"{site}{n:03}", text=text(f"{site}{n // 2}", changed=n % 2), fetched_at=MAY)
        for n in range(count)
    ]


def test_pages_are_recorded_and_asked_for(client: doppel.Client) -> None:
    site = "https://recorded.example/"
    taken = client.record_page({"url": site + "a#part", "text": text("a"), "fetched_at": "2024-05-01T08:00:00Z"})
    assert (taken.url, taken.outcome) == (site + "a", "pending")
    given = [
        {"url": site + "b", "text": text("a", changed=2), "fetched_at": MAY},
        {"url": site + "old", "redirect_to": site + "a"},
        {"url": site + "wrong", "txt": "a field that there is not"},
        {"url": site + "gone", "dead": True},
    ]
    answers = list(client.record_pages(given))
    assert [answer.outcome for answer in answers] == ["pending", "pending", None, "confirmed"]
    wrong = answers[2]
    assert wrong.error is not None
    assert (wrong.line, wrong.error.code) == (3, "invalid")
    assert client.flush(wait=True, timeout=60).done

    copy = client.get_status(site + "b")
    assert (copy.status, copy.duplicate_of, copy.winner) == ("duplicate", site + "a", site + "a")
    assert copy.similarity is not None
    assert 0.8 < copy.similarity < 1
    assert copy.fetched_at == MAY
    told = client.get_statuses([site + "a", site + "gone", "no url"]).pages
    assert [one.status for one in told] == ["winner", "dead", None]
    assert told[2].error is not None
    assert client.probe_page(text=text("a"), url=site + "new").duplicate_of == site + "a"
    assert client.explain_pair(site + "a", site + "b").duplicate

    assert copy.group is not None
    group = client.get_group(copy.group, limit=10)
    assert {page.url for page in group.pages} == {site + "a", site + "b", site + "old"}
    assert client.repair_group(copy.group, dry_run=True).applied is False
    repaired = client.repair_groups([copy.group], by="test")
    assert [repair.applied for repair in repaired.repairs] == [True]
    trail = client.list_repairs(group=copy.group).repairs
    assert [entry.by for entry in trail] == ["test"]
    assert client.get_repair(trail[0].id).before == sorted([site + "a", site + "b"])

    assert client.delete_page(site + "b", fetched_at=datetime(2024, 6, 1, tzinfo=UTC)).outcome == "confirmed"
    assert client.purge(host="recorded.example").purged == 4


def test_an_iterable_is_sent_in_batches(server: doppel.Server) -> None:
    site = "https://batches.example/"
    with server.client() as client:
        given = 0

        def counted() -> Iterator[doppel.Page]:
            nonlocal given
            for page in pages(site, 250):
                given += 1
                yield page

        answers = client.record_pages(counted(), lines_max=100)
        first = next(answers)
        assert (first.line, first.url) == (1, site + "000")
        assert given == 101, "one batch, and the page after it"
        rest = list(answers)
        assert [answer.line for answer in rest] == list(range(2, 251))
        assert [answer.url for answer in rest] == [f"{site}{n:03}" for n in range(1, 250)]
        few = list(client.record_pages(pages(site, 10), bytes_max=1))
        assert [answer.outcome for answer in few] == ["unchanged"] * 10
        client.purge(host="batches.example")


def test_the_feed_goes_on_where_it_was(client: doppel.Client) -> None:
    site = "https://feed.example/"
    start = client.changes()
    list(start)
    list(client.record_pages(pages(site, 10)))
    client.flush(wait=True)
    feed = client.changes(start.cursor, limit=4)
    events = iter(feed)
    seen = [next(events) for _ in range(4)]
    assert feed.cursor == start.cursor, "the first section may not have been worked off"
    seen.append(next(events))
    assert feed.cursor != start.cursor
    # The sixth event has not been asked for, so the fifth may not have been worked off.
    again = [change.url for change in client.changes(feed.cursor)]
    assert seen[4].url in again
    assert {change.url for change in seen} | set(again) == {f"{site}{n:03}" for n in range(10)}
    assert {change.url for change in feed} == set(again), "the same feed goes on there, too"
    assert list(feed) == []
    state = {change.url: change.status for change in client.changes(start.cursor)}
    assert sorted(state.values()) == ["duplicate"] * 5 + ["winner"] * 5
    sections = client.changes(start.cursor, limit=4).sections()
    assert [len(section.changes) for section in sections][:1] == [4]

    with client.export_pages() as export:
        exported = {page.url: page.status for page in export if page.url.startswith(site)}
    assert exported == state
    assert list(client.changes(export.cursor)) == []
    with pytest.raises(doppel.CursorGone):
        list(client.changes("0.0"))
    client.purge(host="feed.example")


def test_the_feed_is_followed(server: doppel.Server) -> None:
    url = "https://followed.example/"

    async def main() -> set[str]:
        async with server.async_client() as client:
            start = client.changes()
            _ = [change async for change in start]

            async def follow() -> set[str]:
                seen: set[str] = set()
                async for change in client.changes(start.cursor, follow=True, wait=20):
                    seen.add(change.url)
                    if len(seen) == 2:
                        break
                return seen

            following = asyncio.create_task(follow())
            await asyncio.sleep(0.2)
            for name in "ab":
                await client.record_page({"url": url + name, "text": text(name)})
                await client.flush(wait=True)
            return await asyncio.wait_for(following, 30)

    assert asyncio.run(main()) == {url + "a", url + "b"}


def test_the_asynchronous_client_does_the_same(server: doppel.Server) -> None:
    site = "https://async.example/"

    async def main() -> None:
        async with server.async_client() as client:

            async def given() -> AsyncIterator[doppel.Page]:
                for page in pages(site, 30):
                    yield page

            answers = [answer async for answer in client.record_pages(given(), lines_max=7)]
            assert [answer.line for answer in answers] == list(range(1, 31))
            listed = [answer.outcome async for answer in client.record_pages(pages(site, 3))]
            assert listed == ["unchanged"] * 3
            assert (await client.flush(wait=True)).done
            assert (await client.get_status(site + "001")).duplicate_of == site + "000"
            async with client.export_pages() as export:
                assert export.cursor
                exported = [page.url async for page in export if page.url.startswith(site)]
            assert exported == sorted(exported)
            assert len(exported) == 30
            assert [change async for change in client.changes(export.cursor)] == []
            sizes = [len(section.changes) async for section in client.changes(limit=10).sections()]
            assert sum(sizes) >= 30
            backup = b"".join([chunk async for chunk in client.get_backup()])
            assert backup.startswith(b"doppel")
            with pytest.raises(doppel.NotFound):
                await client.get_group("g999999-0")

    asyncio.run(main())


def test_a_backup_is_restored(server: doppel.Server, client: doppel.Client, tmp_path: Path) -> None:
    client.record_page({"url": "https://backup.example/", "text": text("backup")})
    client.flush(wait=True)
    file = tmp_path / "today.backup"
    with file.open("wb") as out, client.get_backup() as backup:
        out.writelines(backup)
    subprocess.run([doppel.program(), "restore", file, "--data", tmp_path / "data"], check=True, capture_output=True)
    with doppel.Server(tmp_path / "data") as restored, restored.client() as other:
        assert other.get_status("https://backup.example/").status == "unique"
