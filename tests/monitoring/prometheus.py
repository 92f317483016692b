"""A Prometheus that scrapes a server: its configuration, and whether every query of the board has data in it.

    prometheus.py config SERVER                      prints the configuration
    prometheus.py check SERVER PROMETHEUS BOARD      loads the server, and asks the queries of the board and of the alerts
"""

import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# How long data is waited for, in seconds.
PATIENCE = 60

# What a single process has no data of. Their names are held against the sources.
OF_CLUSTERS = re.compile(r"\bdoppel_(?:cluster|wire)_[a-z_]+")

ROOT = pathlib.Path(__file__).parents[2]


def config(server):
    host = server.removeprefix("http://")
    rules = ROOT / "deploy" / "alerts.yml"
    return f"""global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: doppel
    static_configs: [{{targets: ["{host}"]}}]
"""


def ask(url, body=None, kind="application/json"):
    request = urllib.request.Request(url, data=body, headers={"content-type": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def load(server, batch):
    """Pages of which some are copies, some updates of the batch before, and one is none; questions; an answer with an error."""
    lines = []
    for number in range(40):
        words = " ".join(f"t{batch % 3}x{number // 2}w{at}" for at in range(60))
        lines.append(json.dumps({"url": f"http://site{number % 7}.example/{batch % 2}/{number}", "text": words}))
    lines.append("no page")
    ask(f"{server}/v1/pages", "\n".join(lines).encode(), "application/x-ndjson")
    ask(f"{server}/v1/status?url=http://site1.example/0/1")
    try:
        ask(f"{server}/v1/nothing")
    except urllib.error.HTTPError:
        pass


def query(prometheus, expression):
    text = urllib.parse.urlencode({"query": expression})
    answer = json.loads(ask(f"{prometheus}/api/v1/query?{text}"))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def queries(board):
    """Title and expression of every panel and annotation, as the board would ask it for all jobs and instances."""
    every = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]
    every += [(note["name"], note["expr"]) for note in board["annotations"]["list"]]
    for title, expression in every:
        for variable, value in [("$__rate_interval", "30s"), ("$job", ".+"), ("$instance", ".+")]:
            expression = expression.replace(variable, value)
        assert "$" not in expression, f"{title}: {expression}"
        yield title, expression


def check(server, prometheus, path):
    board = json.loads(pathlib.Path(path).read_text())
    sources = "".join(file.read_text() for file in (ROOT / "coordinator/src/metrics").glob("*.rs"))
    asked, waiting = 0, []
    for title, expression in queries(board):
        asked += 1
        names = OF_CLUSTERS.findall(expression)
        unknown = [name for name in names if f'"{name.removesuffix("_total")}"' not in sources]
        assert not unknown, f"{title}: there is no {unknown}"
        # What is true of nothing yet has no data: that a process was started again.
        if not names and not expression.endswith("> 0"):
            waiting.append((title, expression))
        else:
            query(prometheus, expression)
    assert asked > 40, asked
    begin, batch = time.monotonic(), 0
    while waiting and time.monotonic() < begin + PATIENCE:
        load(server, batch)
        batch += 1
        time.sleep(1)
        waiting = [(title, expression) for title, expression in waiting if not query(prometheus, expression)]
    for title, expression in waiting:
        print(f"no data: {title}: {expression}")
    target = json.loads(ask(f"{prometheus}/api/v1/targets"))["data"]["activeTargets"][0]
    assert target["health"] == "up", target["lastError"]
    rules = json.loads(ask(f"{prometheus}/api/v1/rules"))["data"]["groups"]
    broken = [rule["name"] for group in rules for rule in group["rules"] if rule["health"] == "err"]
    firing = query(prometheus, 'ALERTS{alertstate="firing"}')
    print(f"{asked} queries of the board, {batch} batches of pages, {len(firing)} alerts")
    return not (waiting or broken)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["config", server]:
            print(config(server), end="")
        case ["check", server, prometheus, board]:
            sys.exit(0 if check(server, prometheus, board) else 1)
        case _:
            sys.exit(__doc__)
