"""The example for Scrapy crawls a site three times while its pages change, move and die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import doppel
from changing_site import PAGES, Site, path, served
from doppel.contract.types import ChangeLine

FOLDER = Path(__file__).parent / "scrapy_crawl"


def crawl(site: Site, server: doppel.Server) -> list[str]:
    """Runs Scrapy as a user would. Gives the paths that were fetched."""
    site.fetched.clear()
    command = [sys.executable, "-m", "scrapy", "runspider", "site_spider.py", "-a", f"site={site.url}/"]
    environment = {**os.environ, "DOPPEL_SERVER": server.url}
    done = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return [fetched for fetched in site.fetched if fetched != "/robots.txt"]


def statuses(client: doppel.Client, site: Site) -> dict[str, str]:
    with client.export_pages() as export:
        return {page.url.removeprefix(site.url): page.status for page in export}


def test_three_crawls() -> None:
    with doppel.Server() as server, server.client() as client, served(Site()) as site:
        # A consumer that has nothing but the feed.
        followed: dict[str, ChangeLine] = {}
        feed = client.changes()

        def catch_up() -> None:
            client.flush(wait=True)
            for change in feed:
                followed[change.url] = change
                if change.status in ("dead", "unknown"):
                    del followed[change.url]
            with client.export_pages() as export:
                exported = {page.url: (page.status, page.group, page.winner, page.duplicate_of) for page in export}
            told = {url: (one.status, one.group, one.winner, one.duplicate_of) for url, one in followed.items()}
            assert told == exported

        fetched = crawl(site, server)
        assert sorted(fetched) == sorted(["/", *(path(n) for n in range(PAGES))])
        catch_up()
        first = statuses(client, site)
        duplicates = {of for of, status in first.items() if status == "duplicate"}
        # Of two pages with nearly one text the one that was fetched first is kept.
        for n in range(0, PAGES, 3):
            assert first[path(n)] == "unique"
            assert sorted([first[path(n + 1)], first[path(n + 2)]]) == ["duplicate", "winner"]
        assert len(first) == PAGES + 1

        site.change()
        fetched = crawl(site, server)
        assert duplicates.isdisjoint(fetched), "what is a duplicate is not fetched again"
        kept = {path(n) for n in range(PAGES)} - duplicates
        moved = {f"/moved/{n}" for n in range(30, 60)}
        assert set(fetched) == {"/"} | kept | moved
        assert len(fetched) == len(set(fetched)), "nothing is fetched twice"
        catch_up()
        second = statuses(client, site)
        # A new text is like no other, and an old copy of what it was is the only one left.
        assert {second[path(n)] for n in range(30)} == {"unique"}
        gone = {path(n) for n in range(60, 90)} & kept
        assert gone.isdisjoint(second)
        redirects = {path(n) for n in range(30, 60)} & kept
        assert {second[of] for of in redirects} == {"duplicate"}

        site.change_again()
        spared = {of for of, status in second.items() if status == "duplicate"} | gone
        fetched = crawl(site, server)
        assert spared.isdisjoint(fetched)
        assert len(fetched) == len(set(fetched))
        # A duplicate whose original has changed or died is fetched now.
        assert {path(n) for n in [*range(30), *range(60, 90)]} & duplicates <= set(fetched)
        catch_up()
        third = statuses(client, site)
        assert ({path(n) for n in range(60, 90)} | moved - spared).isdisjoint(third)
        copies = {path(n) for n in range(90, 120)} - spared
        assert {third[of] for of in copies} <= {"duplicate", "winner"}
        print(
            f"{len(first)}, {len(second)}, {len(third)} live pages after each crawl; {len(fetched)} fetched in the third"
        )
