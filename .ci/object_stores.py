"""Reads the same pages from a directory and from stores of objects, and compares what `doppel dedup` says of them."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import boto3
import pyarrow
import pyarrow.parquet
from azure.storage.blob import ContainerClient

WORK = Path(sys.argv[1]).resolve()
FILES = WORK / "files"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # azurite's, which is in its documentation


def make_files() -> None:
    """Records without URLs in three formats, and one of many megabytes, which is fetched in pieces."""
    shutil.rmtree(FILES, ignore_errors=True)
    words = [f"w{number}" for number in range(5000)]
    def text(number: int) -> str:
        number -= number % 3 == 2
        return " ".join(words[(number * 7919 + at * at) % 5000] for at in range(60))
    (FILES / "data/deep").mkdir(parents=True)
    (FILES / "data/a.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps({"text": text(n)}) + "\n" for n in range(300)).encode())
    )
    rows = {"id": list(range(900)), "text": [text(n + 200) for n in range(900)]}
    pyarrow.parquet.write_table(pyarrow.table(rows), FILES / "data/deep/b.parquet", compression="none")
    large = ({"id": str(n), "text": text(n) + " word" * 500} for n in range(8000))
    (FILES / "data/large.jsonl").write_text("".join(json.dumps(record) + "\n" for record in large))
    (FILES / "data/README.md").write_text("Beside.")
    (FILES / "data/.hidden.jsonl").write_text('{"text": "hidden"}\n')


def dedup(*inputs: str, **environment: str) -> str:
    command = [os.environ["DOPPEL"], "dedup", "--out", "-", *inputs]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{inputs}: {done.stderr}"
    return done.stdout


def refused(said: str, *inputs: str, **environment: str) -> None:
    command = [os.environ["DOPPEL"], "dedup", *inputs]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and said in done.stderr, f"{inputs}: {done.returncode}: {done.stderr}"


def same(store: str, expected: dict[str, str], **environment: str) -> None:
    for name, lines in expected.items():
        assert dedup(store + name, **environment) == lines, store + name
        print("the same:", store + name)


def wait_for(address: str) -> None:
    for _ in range(300):
        try:
            urlopen(address).close()
            return
        except OSError as error:
            if hasattr(error, "code"):
                return
            time.sleep(0.1)
    raise SystemExit(f"{address} does not answer")


class Web(SimpleHTTPRequestHandler):
    """A web server that sends parts of files, or with `/whole/` in front of a path never."""

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=str(FILES))

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.path.startswith("/whole/") or not asked:
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Last-Modified", self.date_time_string(int(Path(self.translate_path(self.path)).stat().st_mtime)))
        self.end_headers()
        self.wfile.write(content[first : last + 1])

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix("/whole"))

    def log_message(self, *_) -> None:
        pass


def main() -> None:
    make_files()
    stored = [path for path in FILES.rglob("*") if path.is_file()]
    inputs = {
        "data/": f"{FILES}/data",
        "data/**/*.parquet": f"{FILES}/data/**/*.parquet",
        "data/*.jsonl*": f"{FILES}/data/*.jsonl*",
        "data/large.jsonl": f"{FILES}/data/large.jsonl",
    }
    expected = {name: dedup(path) for name, path in inputs.items()}

    s3 = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", "7801"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    azure = subprocess.Popen(
        [WORK / "npm/node_modules/.bin/azurite-blob", "--inMemoryPersistence", "--blobPort", "10000", "--skipApiVersionCheck", "--disableTelemetry"],
        stdout=subprocess.DEVNULL,
    )
    web = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        environment = {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:7801",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        wait_for(environment["AWS_ENDPOINT_URL"])
        client = boto3.client(
            "s3",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="pages")
        for path in stored:
            client.upload_file(str(path), "pages", str(path.relative_to(FILES)))
        same("s3://pages/", expected, **environment)
        refused("not found", "s3://pages/data/none.jsonl", **environment)
        refused("no object matches this pattern", "s3://pages/data/*.warc", **environment)
        refused("there is no crawl file", "s3://pages/none/", **environment)

        environment = {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURE_ALLOW_HTTP": "true"}
        wait_for("http://127.0.0.1:10000/devstoreaccount1")
        container = ContainerClient(
            "http://127.0.0.1:10000/devstoreaccount1", "pages", credential={"account_name": "devstoreaccount1", "account_key": KEY}
        )
        container.create_container()
        for path in stored:
            container.upload_blob(str(path.relative_to(FILES)), path.read_bytes())
        same("az://pages/", expected, **environment)
        refused("cannot read az://pages/data/none.jsonl", "az://pages/data/none.jsonl", **environment)

        address = f"http://127.0.0.1:{web.server_port}/"
        one = {name: lines for name, lines in expected.items() if "*" not in name and not name.endswith("/")}
        one["data/deep/b.parquet"] = dedup(f"{FILES}/data/deep/b.parquet")
        same(address, one)
        same(address + "whole/", one)
        refused("a web server does not list its files", address + "data/")
        refused("cannot read", address + "none.jsonl")
    finally:
        for server in (s3, azure):
            server.terminate()
            server.wait()
        web.shutdown()


main()
